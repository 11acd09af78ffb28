"""``netloop inspect``: what is in a model."""

import json

import pytest

from netloop.compiler.launches import Launches
from netloop.compiler.xla_compilation import XlaFunction
from tests.support.gpu_programs import COUNTED, OPEN


def test_text_of_a_model(models, run):
    done = run("inspect model.py")

    assert (done.status, done.err) == (0, "")
    assert done.out == (
        "model.py: 'Unnamed Network 0', 8 layers; weights: 2 numbers in 2 arrays, 8 bytes\n"
        "inputs:\n"
        "  x: float32[-1,3]\n"
        "outputs:\n"
        "  y: float32[-1,3]\n"
        "layers by kind:\n"
        "  2 Constant, 2 ElementWise, 1 Activation, 1 LoopOutput, 1 Recurrence, 1 TripLimit\n"
        "loops:\n"
        "  'steps': COUNT, 1 recurrence, 0 iterators, 1 loop output, 2 layers inside\n"
        "largest weights:\n"
        "  (Unnamed Layer* 1) [Constant]_output: int32[], 4 bytes\n"
        "  (Unnamed Layer* 4) [Constant]_output: float32[1,1], 4 bytes\n"
    )


def test_listing_of_the_layers(models, run):
    lines = run("inspect model.py --layers").out.splitlines()

    start = lines.index("network 'Unnamed Network 0': 1 input, 8 layers, 1 output")
    assert lines[start + 1] == "  input x: float32[-1,3]"
    assert "  loop steps" in lines[start:]


def test_what_passes_did(models, run):
    said = run("inspect model.py --passes --shapes x:2x3").out

    assert "loop 'steps' runs as scan: its COUNT limit is known, and it has no WHILE limit\n" in said
    assert "what passes changed:\n  loop_unrolling: " in said


@pytest.mark.parametrize("name", ["model.py", "model.onnx", "model.xml", "model.plan"])
def test_json_of_every_format(models, run, name):
    found = json.loads(run(f"inspect {name} --json").out)

    assert [value["name"] for value in found["inputs"] + found["outputs"]] == ["x", "y"]
    (loop,) = found["loops"]
    assert (loop["recurrences"], loop["loop_outputs"], loop["inside"]) == (1, 1, None)
    assert {"name", "kind", "attributes", "inputs", "outputs", "loops"} == set(found["layers"][0])
    inside = [value["kind"] for value in found["layers"] if value["loops"]]
    assert sorted(value for value in inside if value == "ElementWise") == ["ElementWise"] * 2
    assert found["elements"] >= 2
    assert "strategies" not in found


def test_json_with_passes(models, run):
    found = json.loads(run("inspect model.py --json --passes").out)

    assert found["strategies"][0]["strategy"] == "scan"
    assert found["passes"][0]["name"] == "loop_unrolling"


def test_invalid_network_is_told(models, run):
    source = (models / "model.py").read_text().replace("    state.set_input(1, following)\n", "")
    (models / "model.py").write_text(source)
    done = run("inspect model.py")

    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("NL203: ")


def test_nested_loops_name_the_loop_around(models, run):
    (models / "nested.py").write_text(NESTED)
    said = run("inspect nested.py").out

    assert "  'outer': COUNT, 1 recurrence, 0 iterators, 1 loop output" in said
    assert "  'inner' in 'outer': COUNT, 1 recurrence, 0 iterators, 1 loop output, 1 layer inside\n" in said


NESTED = """\
import numpy as np
import netloop as trt


def build():
    network = trt.INetworkDefinition()
    three = network.add_constant((), np.array(3, np.int32)).get_output(0)
    outer, inner = network.add_loop(), network.add_loop()
    outer.name, inner.name = "outer", "inner"
    outer.add_trip_limit(three, trt.TripLimit.COUNT)
    inner.add_trip_limit(three, trt.TripLimit.COUNT)
    state = outer.add_recurrence(three)
    inside = inner.add_recurrence(state.get_output(0))
    more = network.add_elementwise(inside.get_output(0), three, trt.ElementWiseOperation.SUM).get_output(0)
    inside.set_input(1, more)
    state.set_input(1, inner.add_loop_output(inside.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0))
    last = outer.add_loop_output(state.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0)
    network.mark_output(last)
    return network
"""


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            COUNTED,
            "launches of a call on the GPU: 20; outside of loops and branches: 1\n"
            "  of an iteration of the compiled loop 'body.1': 2, 9 times\n",
        ),
        (
            OPEN,
            "launches of a call on the GPU: as many as the run decides; outside of loops and branches: 1\n"
            "  of an iteration of the compiled loop 'body.1': 3\n",
        ),
    ],
)
def test_launches_on_a_gpu(models, run, monkeypatch, text, lines):
    assert "launches" not in run("inspect model.py --passes --shapes x:2x3").out
    monkeypatch.setattr(XlaFunction, "launches", Launches.of(text))

    assert run("inspect model.py --passes --shapes x:2x3").out.endswith(lines)
