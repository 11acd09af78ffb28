"""How the command line ends when it is interrupted, or cannot read or write."""

import os
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import netloop as trt
from netloop.tools.cli import COMMANDS, main, models
from netloop.values.diagnostics import explain


@pytest.fixture
def output(monkeypatch):
    """Replaces standard output by a descriptor."""

    def replace(descriptor: int, encoding: str = "utf-8"):
        made = os.fdopen(descriptor, "w", encoding=encoding)
        monkeypatch.setattr(sys, "stdout", made)
        return made

    return replace


def unread_pipe() -> int:
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def test_pipe_that_no_one_reads_ends_a_command_silently(capsys, output):
    stdout = output(unread_pipe())

    assert main(["rules"]) == 141
    stdout.close()
    assert capsys.readouterr().err == ""


def test_pipe_that_no_one_reads_ends_the_process_silently():
    command = [sys.executable, "-m", "netloop", "rules"]
    with os.fdopen(unread_pipe(), "w") as pipe:
        ran = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, timeout=100)

    assert (ran.returncode, ran.stderr) == (141, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
def test_full_disk_is_one_line(capsys, output):
    stdout = output(os.open("/dev/full", os.O_WRONLY))

    assert main(["explain", "NL204"]) == 2
    stdout.close()
    assert capsys.readouterr().err == "[Errno 28] No space left on device\n"


def test_output_without_the_letters_of_a_text_is_one_line(capsys, output, monkeypatch, tmp_path):
    monkeypatch.setattr(explain, "rules_page", lambda: "\u00e4")
    (tmp_path / "model.py").write_text("")
    monkeypatch.setattr(models, "network_of", lambda file: print("\u00e4"))
    for command in (["rules"], ["check", str(tmp_path / "model.py")]):
        with output(os.open(os.devnull, os.O_WRONLY), "ascii"):
            assert main(command) == 2
        assert "'ascii' codec can't encode character '\\xe4'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["demo", "--weights", "none.wts"], "[Errno 2] No such file or directory: 'none.wts'\n"),
        (["demo", "--weights", "."], "[Errno 21] Is a directory: '.'\n"),
        (["check", "folder.py"], "there is no file 'folder.py'\n"),
        (["run", "none.onnx"], "there is no file 'none.onnx'\n"),
    ],
)
def test_file_that_cannot_be_read_is_one_line(capsys, arguments, error):
    assert main(arguments) == 2
    assert capsys.readouterr().err == error


# ---------------------------------------------------------------------------- help


def test_no_command_prints_the_help(capsys):
    assert main([]) == 0

    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.startswith("usage: netloop [-h] [--version] COMMAND ...")
    assert all(f"\n    {name}" in printed.out for name in COMMANDS)


@pytest.mark.parametrize("command", [[], *([command, "--help"] for command in COMMANDS), ["--version"]], ids=str)
def test_help_imports_neither_jax_nor_numpy(command):
    program = (
        "import sys\n"
        "from netloop.tools.cli import main\n"
        "try:\n"
        f"    main({command})\n"
        "except SystemExit:\n"
        "    pass\n"
        "print({'jax', 'numpy'} & {*sys.modules}, file=sys.stderr)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)

    assert ran.stderr == "set()\n"
    assert ran.stdout


def test_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])

    assert ended.value.code == 0
    assert capsys.readouterr().out == f"netloop {trt.__version__}\n"


@pytest.mark.parametrize(
    ("command", "hint"), [("inspekt", "did you mean 'inspect'?"), ("xyz", "there are run, inspect")]
)
def test_unknown_command_has_a_hint(command, hint, capsys):
    assert main([command]) == 2
    assert capsys.readouterr().err.startswith(f"netloop has no command {command!r}; {hint}")


def test_commands_are_modules_with_the_names_of_the_list():
    folder = Path(trt.__file__).parent / "tools" / "cli"

    assert all(f'add_command(commands, "{name}", EXAMPLES' in (folder / f"{name}.py").read_text() for name in COMMANDS)


# ---------------------------------------------------------------------------- ends


def test_warnings_of_netloop_alone_are_shown(models, run, monkeypatch):
    def load(path):
        warnings.warn("this is for programmers", RuntimeWarning, stacklevel=1)
        warnings.warn(trt.ModelWarning(trt.Finding("NL751", "this is for users")), stacklevel=1)
        return built()

    built = runpy.run_path("model.py")["build"]
    monkeypatch.setattr(trt.onnx, "load", load)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        done = run("check model.onnx")

    assert done.status == 0
    assert done.err == "warning: NL751: this is for users\n"


def test_interrupt_ends_a_command_silently(capsys, monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(explain, "rules_page", interrupted)

    assert main(["rules"]) == 130
    assert capsys.readouterr() == ("", "")
