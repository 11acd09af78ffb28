"""How the command line ends when it is interrupted, or cannot read or write."""

import os
import subprocess
import sys

import pytest

from netloop.cli import check, main, texts


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


def test_output_without_the_letters_of_a_text_is_one_line(capsys, output, monkeypatch):
    monkeypatch.setattr(texts, "rules_page", lambda: "\u00e4")
    monkeypatch.setattr(check, "network_of", lambda file: print("\u00e4"))
    for command in (["rules"], ["check", "model.py"]):
        with output(os.open(os.devnull, os.O_WRONLY), "ascii"):
            assert main(command) == 2
        assert "'ascii' codec can't encode character '\\xe4'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["demo", "--weights", "none.wts"], "[Errno 2] No such file or directory: 'none.wts'\n"),
        (["demo", "--weights", "."], "[Errno 21] Is a directory: '.'\n"),
        (["check", "."], "there is no file '.'\n"),
    ],
)
def test_file_that_cannot_be_read_is_one_line(capsys, arguments, error):
    assert main(arguments) == 2
    assert capsys.readouterr().err == error


def test_interrupt_ends_a_command_silently(capsys, monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(texts, "rules_page", interrupted)

    assert main(["rules"]) == 130
    assert capsys.readouterr() == ("", "")
