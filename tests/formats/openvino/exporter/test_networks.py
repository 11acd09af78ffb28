"""Whole networks in OpenVINO."""

import numpy as np
import pytest

import netloop as trt
from netloop.tools.demo import char_rnn
from netloop.values.types import NUMPY_TYPES
from tests.compiler.execution.test_differential import assert_equal
from tests.support.examples import many, mostly_slow
from tests.support.networks import EXAMPLES, assert_outputs, mark, scatter_with_reduction
from tests.support.openvino_exportable import grown
from tests.support.openvino_runtime import export, run, run_or_skip

NOT_IN_PLUGIN = {"loop in a conditional": "it computes int64 in 32 bits"}
IN_PLUGIN = {name: example for name, example in EXAMPLES.items() if name not in NOT_IN_PLUGIN}


def agree(seed):
    made = grown(seed)

    got = run_or_skip(export(made.network, drop_assertions=True), made.inputs)
    assert_equal(got, trt.evaluate(made.network, made.inputs), made.rough)


@pytest.mark.parametrize("example", IN_PLUGIN.values(), ids=IN_PLUGIN)
def test_every_example_gives_what_was_worked_out_by_hand(example):
    assert_outputs(run(export(example.make(), drop_assertions=True), example.inputs), example.outputs)


def test_language_model_generates_the_same_text():
    model = char_rnn.load()
    inputs = {"seed": char_rnn.encode("ROMEO"), "count": np.int32(12)}
    network = char_rnn.generating_network(model)

    np.testing.assert_array_equal(run(export(network), inputs)["generated"], trt.compile(network)(inputs)["generated"])


@pytest.mark.parametrize("seed", mostly_slow(10, range(20)))
def test_random_network_gives_what_the_reference_means(seed):
    agree(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", many(30, 20))
def test_random_network_gives_what_the_reference_means_at_length(seed):
    agree(seed)


@pytest.mark.parametrize("reduction", ["SUM", "PROD", "MAX", "MIN"])
@pytest.mark.parametrize("mode", [trt.ScatterMode.ND, trt.ScatterMode.ELEMENT])
def test_scatter_keeps_its_reduction(mode, reduction):
    network = scatter_with_reduction(mode, trt.ReduceOperation.__members__[reduction])
    x = np.arange(1, 7, dtype=np.float32).reshape(3, 2)

    np.testing.assert_array_equal(run(export(network), {"x": x})["y"], trt.evaluate(network, {"x": x})["y"])


@pytest.mark.parametrize("dtype", [trt.fp8, trt.e5m2])
def test_select_of_floats_of_8_bits_is_computed_by_the_plugin(dtype):
    network = trt.INetworkDefinition()
    condition = network.add_input("condition", trt.bool, (2,))
    a, b = (network.add_input(name, dtype, (2,)) for name in "ab")
    mark(network, y=network.add_select(condition, a, b).get_output(0))
    a, b = np.array([[1, 2], [3, 4]]).astype(NUMPY_TYPES[dtype])

    y = run(export(network), {"condition": np.array([True, False]), "a": a, "b": b})["y"]

    np.testing.assert_array_equal(y.astype(np.float32), [1, 4])
