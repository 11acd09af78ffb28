"""The first tensor that differs, in loops, conditionals and files."""

import numpy as np
import pytest

import netloop as trt
from netloop import peers
from netloop.model.layers.pointwise import IElementWiseLayer, IUnaryLayer
from tests.support.log import Log
from tests.support.networks import EXAMPLES, Op, combine, constant, counted, counter, mark, stacked


@pytest.fixture
def wrong(monkeypatch):
    """Engines compute some layers wrongly: a function replaces the results of those of a name."""

    def plant(kind, name, fault):
        right = kind.lower

        def lower(self, *arrays):
            made = right(self, *arrays)
            return fault(made, *arrays) if self.name == name else made

        monkeypatch.setattr(kind, "lower", lower)

    return plant


@pytest.mark.parametrize("name", ["onnxruntime", "reference"])
@pytest.mark.parametrize("example", [*EXAMPLES.values()][::7], ids=[*EXAMPLES][::7])
def test_nothing_differs(example, name):
    try:
        found = peers.difference_from(peers.kind_of(name), example.make(), example.inputs)
    except trt.NetworkError:
        pytest.skip("ONNX cannot express it")

    assert found is None


@pytest.mark.parametrize("name", ["onnxruntime", "openvino", "reference"])
def test_iteration_in_which_an_engine_is_wrong(network, wrong, name):
    pytest.importorskip("openvino")
    loop = counted(network, 5)
    loop.name = "steps"
    square = combine(network, *[counter(network, loop)] * 2, Op.PROD)
    square.name = square.producer.name = "square"
    mark(network, y=stacked(loop, square, constant(network, 5, np.int32)))
    wrong(IElementWiseLayer, "square", lambda made, a, _: made + (a == 3))
    found = peers.difference_from(peers.kind_of(name), network, {})

    assert (found.tensor, found.iterations, found.peer) == ("square", {"steps": 3}, name)
    assert (found.expected, found.got) == (9, 10)
    said = f"'square' differs first in iteration 3 of 'steps': the engine computes 10, and {name} 9\n  at "
    assert str(found).startswith(said)


def test_equal_names_inside_a_network_are_told_apart(network, wrong):
    x = network.add_input("x", trt.float32, (2,))
    for number in range(3):
        x = network.add_unary(x, trt.UnaryOperation.NEG).get_output(0)
        x.name, x.producer.name = "same", f"layer {number}"
    network.mark_output(x)
    wrong(IUnaryLayer, "layer 1", lambda made, *_: 2 * made)
    found = peers.difference_from(peers.kind_of("onnxruntime"), network, {"x": np.float32([1, 2])})

    assert "'layer 1'" in found.where


def test_warnings_are_not_logged_again():
    log = Log()
    network = trt.Builder(log).create_network()
    loop = network.add_loop()
    loop.add_trip_limit(constant(network, 5, np.int32), trt.TripLimit.COUNT)
    rows = stacked(loop, counter(network, loop), constant(network, 4, np.int32))
    condition = network.add_input("c", trt.bool, ())
    choice = network.add_if_conditional()
    choice.set_condition(condition)
    mark(network, y=choice.add_output(rows, constant(network, [0] * 4, np.int32)).get_output(0))
    assert "NL222" in [finding.code for finding in trt.check(network)]
    peers.difference_from(peers.kind_of("reference"), network, {"c": np.array(False)})

    assert len([line for _, line in log.lines if line.startswith("NL222")]) == 1
