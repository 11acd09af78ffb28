"""Networks keep their meaning when they are exported and imported again."""

import numpy as np
import pytest
from hypothesis import given

import netloop as trt
import netloop.onnx
from tests.compiler.execution.test_differential import assert_equal
from tests.support.examples import examples, same_examples
from tests.support.networks import EXAMPLES, assert_outputs, combine, constant, counted, mark, stacked
from tests.support.onnx_exportable import Loadable
from tests.support.onnx_models import model
from tests.support.onnx_runtime import export, run
from tests.support.strategies import Grown, networks


def back(network: trt.INetworkDefinition) -> trt.INetworkDefinition:
    model = netloop.onnx.to_model(network, drop_assertions=True)
    return netloop.onnx.load(model.SerializeToString())


def agree(grown: Grown) -> None:
    meant = trt.evaluate(grown.network, grown.inputs)

    assert_equal(trt.evaluate(back(grown.network), grown.inputs), meant, grown.rough)


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_every_example_comes_back(example):
    assert_outputs(trt.evaluate(back(example.make()), example.inputs), example.outputs)


def test_network_comes_back_from_its_file(tmp_path):
    example = EXAMPLES["conditional in a loop"]
    netloop.onnx.save(example.make(), tmp_path / "model.onnx", external_above=0)
    network = netloop.onnx.load(tmp_path / "model.onnx")

    assert [tensor.name for tensor in network.outputs] == [tensor.name for tensor in example.make().outputs]
    assert_outputs(trt.evaluate(network, example.inputs), example.outputs)


def test_network_comes_back_twice():
    example = EXAMPLES["conditional in a loop"]

    assert_outputs(trt.compile(back(back(example.make())))(example.inputs), example.outputs)


@same_examples(25, nightly=600)
@given(networks(depth=2, most=30, grower=Loadable))
def test_random_network_comes_back(grown):
    agree(grown)


@pytest.mark.slow
@examples(100)
@given(networks(depth=4, most=60, grower=Loadable))
def test_random_network_comes_back_at_length(grown):
    agree(grown)


def no_trip_over_rows():
    """y: two states joined, stacked for no rows of x, in an output one longer than a row."""
    network = trt.INetworkDefinition()
    x, none = network.add_input("x", trt.float32, (-1, -1)), network.add_input("none", trt.int32, ())
    outer = network.add_loop()
    outer.add_trip_limit(none, trt.TripLimit.COUNT)
    row = outer.add_iterator(x).get_output(0)
    inner = counted(network, 2)
    state = inner.add_recurrence(row)
    state.set_input(1, combine(network, state.get_output(0), state.get_output(0)))
    shape = network.add_shape(row).get_output(0)
    length = network.add_gather(shape, constant(network, 0, np.int32), 0).get_output(0)
    rows = stacked(inner, state.get_output(0), combine(network, length, 1))
    return mark(network, y=stacked(outer, rows, constant(network, 0, np.int32)))


def test_lengths_of_rows_that_no_trip_makes_follow_from_lengths():
    inputs = {"x": np.zeros((2, 3), np.float32), "none": np.int32(0)}
    network = no_trip_over_rows()

    assert trt.evaluate(network, inputs)["y"].shape == (0, 4, 3)
    assert run(export(network), inputs)["y"].shape == (0, 4, 3)


def test_lengths_of_rows_that_no_trip_makes_are_those_that_a_body_declares():
    text = """
    g (int64 n, bool[k] x) => (int64[i, j] y) {
        yes = Constant <value = bool {1}> ()
        y = Loop (n, yes) <body = b (int64 i, bool c) => (bool d, int64[4] row) {
            d = Identity (c)
            found = NonZero (x)
            minus = Constant <value = int64[1] {-1}> ()
            row = Reshape (found, minus)
        }>
    }
    """
    inputs = {"n": np.int64(0), "x": np.ones(4, np.bool_)}
    loaded = netloop.onnx.load(model(text))

    assert trt.evaluate(loaded, inputs)["y"].shape == (0, 4)
    assert trt.compile(loaded)(inputs)["y"].shape == (0, 4)
    assert trt.evaluate(loaded, inputs | {"n": np.int64(2)})["y"].tolist() == [[0, 1, 2, 3]] * 2
