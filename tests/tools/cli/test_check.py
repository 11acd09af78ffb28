"""``netloop check``: what it prints, and with which status it ends."""

import json
import subprocess
import sys
import textwrap

import pytest

from netloop.tools.cli import main

HEAD = """\
import numpy as np
import netloop as trt

def constant(network, value):
    return network.add_constant((), np.array(value, np.int32)).get_output(0)

"""
SOUND = """\
def build():
    network = trt.INetworkDefinition()
    loop = network.add_loop()
    loop.add_trip_limit(constant(network, 3), trt.TripLimit.COUNT)
    state = loop.add_recurrence(constant(network, 0))
    state.set_input(1, constant(network, 1))
    output = loop.add_loop_output(state.get_output(0), trt.LoopOutput.LAST_VALUE)
    network.mark_output(output.get_output(0))
    return network
"""
BROKEN = SOUND.replace("    state.set_input(1, constant(network, 1))\n", "    state.name = 'h'\n")
WARNED = """\
def build():
    network = trt.INetworkDefinition()
    choice = network.add_if_conditional()
    choice.set_condition(network.add_input("flag", trt.bool, ()))
    loop = network.add_loop()
    loop.add_trip_limit(constant(network, 3), trt.TripLimit.COUNT)
    state = loop.add_recurrence(choice.add_input(constant(network, 0)).get_output(0))
    state.set_input(1, constant(network, 1))
    rows = loop.add_loop_output(state.get_output(0), trt.LoopOutput.CONCATENATE)
    rows.set_input(1, constant(network, 2))
    other = network.add_constant((2,), np.zeros(2, np.int32)).get_output(0)
    network.mark_output(choice.add_output(rows.get_output(0), other).get_output(0))
    return network
"""
PORTABLE_HERE = SOUND.replace("3)", "-1)")


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes ``model.py`` into the current folder, with what the networks need at its head."""
    monkeypatch.chdir(tmp_path)

    def write_model(source, head=HEAD):
        (tmp_path / "model.py").write_text(head + textwrap.dedent(source), encoding="utf-8")

    return write_model


def check(capsys, *more, file="model.py"):
    status = main(["check", file, *more])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_network_without_findings(write, capsys):
    write(SOUND)

    assert check(capsys) == (0, "model.py: 6 layers, no findings\n", "")


@pytest.mark.parametrize("more", [[], ["--target", "tensorrt"]])
def test_warning_is_no_error(write, capsys, more):
    write(WARNED)
    status, out, _ = check(capsys, *more)

    assert status == 0
    assert "NL222 (warning): " in out
    assert out.endswith("model.py: 11 layers, 1 warning\n")


def test_errors(write, capsys):
    write(BROKEN)
    status, out, _ = check(capsys)

    assert status == 1
    assert out.splitlines() == [
        "NL203: 'h' has no next value",
        "  at model.py:11, IRecurrenceLayer 'h'",
        "  because a recurrence is X, Y0, Y1, ...: input 0 is its initial value X, and input 1 its next value Y",
        "  fix: call set_input(1, tensor) on the layer, with the value for the next iteration",
        "model.py: 5 layers, 1 error",
    ]


def test_portability_findings_alone_are_no_failure(write, capsys):
    write(PORTABLE_HERE)
    status, out, _ = check(capsys)

    assert status == 0
    assert out.startswith("NL219 (portability): ")
    assert out.endswith("model.py: 6 layers, 1 portability finding\n")


def test_portability_findings_are_errors_for_tensorrt(write, capsys):
    write(PORTABLE_HERE)
    status, out, _ = check(capsys, "--target", "tensorrt")

    assert status == 1
    assert out.endswith("model.py: 6 layers, 1 error\n")


def test_findings_as_json(write, capsys):
    write(BROKEN)
    status, out, _ = check(capsys, "--json")

    assert status == 1
    assert json.loads(out) == [
        {
            "code": "NL203",
            "severity": "error",
            "what": "'h' has no next value",
            "where": {"file": "model.py", "line": 11, "layer": "h"},
            "why": "a recurrence is X, Y0, Y1, ...: input 0 is its initial value X, and input 1 its next value Y",
            "fix": "call set_input(1, tensor) on the layer, with the value for the next iteration",
        }
    ]


def test_no_findings_as_json(write, capsys):
    write(SOUND)

    assert check(capsys, "--json") == (0, "[]\n", "")


def test_what_has_no_place_has_none_in_json(write, capsys):
    write("""
        def build():
            network = trt.INetworkDefinition()
            network.mark_output(network.add_input("x", trt.float32, ()))
            return network
    """)
    _, out, _ = check(capsys, "--json")

    assert json.loads(out)[0]["where"] == {"file": None, "line": None, "layer": "x"}


def test_what_the_file_prints_is_not_among_the_findings(write, capsys):
    write("print('hello')\n" + SOUND.replace("    return", "    print('there')\n    return"))

    assert check(capsys, "--json") == (0, "[]\n", "hello\nthere\n")


def test_file_imports_what_is_beside_it(write, capsys, tmp_path):
    (tmp_path / "its_own_neighbour.py").write_text("TRIPS = 3\n", encoding="utf-8")
    write("import its_own_neighbour\n" + SOUND.replace("3)", "its_own_neighbour.TRIPS)"))
    before = list(sys.path)

    assert check(capsys)[0] == 0
    assert sys.path == before


def test_script_is_not_run(write, capsys):
    write(SOUND + "\nif __name__ == '__main__':\n    print('running')\n")

    assert check(capsys)[2] == ""


def test_build_may_return_a_plan(write, capsys):
    plan = (
        "    b = trt.Builder(trt.Logger())\n    return b.build_serialized_network(network, b.create_builder_config())\n"
    )
    write(SOUND.replace("    return network\n", plan))

    assert check(capsys) == (0, "model.py: 6 layers, no findings\n", "")


# ---------------------------------------------------------------------------- files that cannot be used


def test_missing_file(capsys):
    assert check(capsys, file="nowhere.py") == (2, "", "there is no file 'nowhere.py'\n")


@pytest.mark.parametrize("source", ["", "build = 3\n"])
def test_file_without_build(write, capsys, source):
    write(source)

    wanted = "model.py has no function build(); write one that returns the network\n"
    assert check(capsys) == (2, "", wanted)


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("3", "build() of model.py returned int, not a network or plan\n"),
        ("None", "build() of model.py returned NoneType, not a network or plan; does it end without a return?\n"),
    ],
)
def test_build_that_returns_no_network(write, capsys, returned, said):
    write(f"def build():\n    return {returned}\n")

    assert check(capsys) == (2, "", said)


def test_exception_in_build_is_shown_from_the_file_on(write, capsys):
    write("def build():\n    return 1 / 0\n", head="")
    status, out, err = check(capsys)

    assert (status, out) == (2, "")
    lines = err.splitlines()
    assert lines[:3] == [
        "Traceback (most recent call last):",
        '  File "model.py", line 2, in build',
        "    return 1 / 0",
    ]
    assert lines[-1] == "model.py does not build a network: build() raised ZeroDivisionError"
    assert "netloop" not in err


@pytest.mark.parametrize(
    ("source", "raised"),
    [("def build(:\n", "SyntaxError"), ("raise KeyError(1)\n", "KeyError"), ("exit(0)", "SystemExit")],
)
def test_file_that_cannot_be_imported(write, capsys, source, raised):
    write(source, head="")
    status, out, err = check(capsys)

    assert (status, out) == (2, "")
    assert err.endswith(f"model.py does not build a network: importing it raised {raised}\n")


def test_network_error_in_build_tells_its_finding(write, capsys):
    write("""
        def build():
            network = trt.INetworkDefinition()
            network.add_input("x", trt.float32, ())
            network.add_input("x", trt.float32, ())
    """)
    status, _, err = check(capsys)

    assert status == 2
    assert "NL104: the network already has an input 'x'\n  at model.py:11\n" in err


def test_it_is_a_command_of_the_module(write, tmp_path):
    write(BROKEN)
    done = subprocess.run(
        [sys.executable, "-m", "netloop", "check", "model.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert done.stdout.startswith("NL203: 'h' has no next value\n")


# ---------------------------------------------------------------------------- models of other formats


@pytest.mark.parametrize("name", ["model.py", "model.onnx", "model.xml", "model.plan"])
def test_model_of_every_format(models, run, name):
    done = run(f"check {name}")

    assert (done.status, done.err) == (0, "")
    assert done.out == f"{name}: 8 layers, no findings\n"


def test_model_that_cannot_be_imported_has_errors(models, run):
    (models / "cut.onnx").write_bytes((models / "model.onnx").read_bytes()[:100])
    (models / "cut.plan").write_bytes((models / "model.plan").read_bytes()[:100])
    text, found = run("check cut.onnx"), run("check cut.plan --json")

    assert (text.status, text.err) == (1, "")
    assert text.out.startswith("NL741: cut.onnx is not an ONNX model")
    assert text.out.endswith("cut.onnx: cannot be imported, 1 error\n")
    assert (found.status, found.err) == (1, "")
    assert [load["code"][:3] for load in json.loads(found.out)] == ["NL7"]
