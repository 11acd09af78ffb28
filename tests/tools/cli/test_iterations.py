"""Commands tell how often loops run, and end those that would not end."""

import json

import numpy as np
import pytest

import netloop as trt
from netloop.model.layers.pointwise import IActivationLayer
from netloop.tools.cli import iterations

SOURCE = """\
import numpy as np
import netloop as trt

Op = trt.ElementWiseOperation


def constant(network, number):
    return network.add_constant((), np.array(number, np.int64)).get_output(0)


def build():
    \"\"\"y: x doubled while it is below 100 and n iterations are not over.\"\"\"
    network = trt.INetworkDefinition()
    loop = network.add_loop()
    loop.name = "doubling"
    x = loop.add_recurrence(network.add_input("x", trt.int64, ()))
    now = x.get_output(0)
    below = network.add_elementwise(now, constant(network, 100), Op.LESS).get_output(0)
    loop.add_trip_limit(below, trt.TripLimit.WHILE)
    x.set_input(1, network.add_elementwise(now, now, Op.SUM).get_output(0))
    y = loop.add_loop_output(now, trt.LoopOutput.LAST_VALUE).get_output(0)
    y.name = "y"
    network.mark_output(y)
    return network


def nested():
    \"\"\"y: the number of pairs, by a loop of n iterations in one of 3.\"\"\"
    network = trt.INetworkDefinition()
    n = network.add_input("n", trt.int64, ())
    outer, inner = network.add_loop(), network.add_loop()
    outer.name, inner.name = "rows", "columns"
    outer.add_trip_limit(constant(network, 3), trt.TripLimit.COUNT)
    inner.add_trip_limit(n, trt.TripLimit.COUNT)
    total = outer.add_recurrence(constant(network, 0))
    inside = inner.add_recurrence(total.get_output(0))
    inside.set_input(1, network.add_elementwise(inside.get_output(0), constant(network, 1), Op.SUM).get_output(0))
    total.set_input(1, inner.add_loop_output(inside.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0))
    y = outer.add_loop_output(total.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0)
    y.name = "y"
    network.mark_output(y)
    return network
"""
COMMANDS = ["run", "debug", "bench --duration 0 --warmUp 0 --iterations 1", "report", "inspect --passes"]


@pytest.fixture
def loops(tmp_path, monkeypatch):
    """A folder with a WHILE loop, and with a loop in a loop."""
    (tmp_path / "while.py").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "nested.py").write_text(SOURCE.replace("build", "other").replace("nested", "build"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def on(command, model, arguments):
    name, _, options = command.partition(" ")
    return f"{name} {model} {options} {arguments} {'--values' if name == 'report' else ''}"


@pytest.mark.parametrize("command", COMMANDS[:-1])
def test_each_command_tells_the_iterations_of_given_inputs(loops, run, command):
    done = run(on(command, "while.py", "--inputs x=3"))

    assert (done.status, done.err) == (0, "")
    assert "loop 'doubling': 6 iterations" in done.out.splitlines()  # 3, 6, 12, 24, 48, 96


@pytest.mark.parametrize("command", COMMANDS)
def test_loop_that_does_not_end_is_an_error_of_each_command(loops, run, command):
    done = run(on(command, "while.py", "--inputs x=0"))

    assert done.status == 2
    said = done.err.splitlines()
    assert said[0] == "NL609: 'doubling' executes more than 10000 iterations"
    assert said[1].startswith("  at while.py:14, ILoop 'doubling'")
    assert said[-1] == (
        "  fix: allow more with --max-trips, give it other --inputs, or correct the limit that should have ended it"
    )


def test_most_iterations_are_an_argument(loops, run):
    assert run("run while.py --inputs x=3 --max-trips 5").status == 2
    assert run("run while.py --inputs x=3 --max-trips 6").status == 0


def test_loop_without_an_iteration_is_a_warning(loops, run):
    done = run("run while.py --inputs x=100 --compare reference")

    assert done.status == 0
    assert done.out.splitlines()[:2] == ["y: int64[] = 100", "loop 'doubling': 0 iterations"]
    assert done.err == ("warning: loop 'doubling' makes no iteration, so nothing in it is run: give --inputs x=...\n")


def test_random_inputs_let_loops_run(loops, run):
    done = run("run while.py --compare reference")
    assert "loop 'doubling': 1 iteration" in done.out.splitlines()

    done = run("run nested.py --compare reference")
    assert done.out.splitlines()[:3] == [
        "y: int64[] = 192",
        "loop 'rows': 3 iterations",
        "loop 'columns' in 'rows': 192 iterations in all",
    ]


def test_long_loop_of_known_length_is_not_ended(loops, run):
    done = run("run nested.py --inputs n=20000 --max-trips 10")

    assert "loop 'columns' in 'rows': 60000 iterations in all" in done.out.splitlines()


def test_run_as_json(loops, run):
    done = run("run nested.py --range n:2:2 --compare reference --json")

    assert done.status == 0
    found = json.loads(done.out)
    assert found["outputs"] == [
        {"name": "y", "type": "int64", "shape": [], "values": [6], "min": 6, "max": 6, "mean": 6, "not_finite": 0}
    ]
    assert found["loops"] == [
        {"name": "rows", "inside": [], "iterations": 3},
        {"name": "columns", "inside": ["rows"], "iterations": 6},
    ]
    (agreement,) = found["comparisons"]["reference"]
    assert (agreement["name"], agreement["agrees"], agreement["caution"]) == ("y", True, "")


def test_json_has_numbers_that_json_has_not(models, run):
    np.savez("odd.npz", x=np.float32([[np.nan, np.inf, 1]]))
    found = json.loads(run("run model.py --inputs odd.npz --json --compare reference").out)

    assert found["outputs"][0]["values"][0] == "nan"
    assert found["outputs"][0]["not_finite"] == 1
    assert found["comparisons"]["reference"][0]["agrees"]


def test_json_has_what_differs(models, run, monkeypatch):
    right = IActivationLayer.lower
    monkeypatch.setattr(IActivationLayer, "lower", lambda self, *arrays: 1.5 * right(self, *arrays))
    done = run("run model.py --inputs x=[[1,1,1]] --json --compare reference")
    (agreement,) = json.loads(done.out)["comparisons"]["reference"]

    assert done.status == 1
    assert (agreement["agrees"], agreement["differing"], agreement["worst"]["index"]) == (False, 3, [0, 0])


def test_zeros_for_small_numbers_differ(models, run, monkeypatch):
    """All outputs of a model of tiny numbers were 0, and agreed."""
    right = IActivationLayer.lower
    monkeypatch.setattr(IActivationLayer, "lower", lambda self, *arrays: 0 * right(self, *arrays))
    arguments = "model.py --inputs x=[[1e-9,2e-9,-3e-9]]"

    assert run(f"run {arguments} --compare onnxruntime,reference").status == 1
    assert run(f"debug {arguments}").status == 1
    assert run(f"debug {arguments} --against onnxruntime").status == 1
    done = run(f"run {arguments} --compare reference --atol 0.001")
    assert done.status == 0
    assert "but the absolute tolerance 0.001 is larger than every number, so zeros would agree too" in done.out
    done = run(f"debug {arguments} --against onnxruntime --atol 0.001")
    assert done.status == 0
    assert "larger than every number" in done.out


@pytest.mark.parametrize("kind", [trt.ExecutionError, trt.NetworkError])
def test_model_whose_iterations_cannot_be_counted_runs(models, run, monkeypatch, kind):
    def fail(*_):
        raise kind(trt.Finding("NL601", "a row is missing"))

    monkeypatch.setattr(iterations, "trip_counts", fail)
    done = run("run model.py --inputs x=[[1,1,1]]")

    assert (done.status, done.out.count("\n")) == (0, 1)
    said = "note: the iterations of loops are not counted: a row is missing\n"
    assert done.err == (said if kind is trt.ExecutionError else "")
