"""Integers in float32: the same numbers as in integers, and where they would not be."""

import numpy as np
import onnxruntime
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import netloop as trt
import netloop.onnx
from netloop.compiler.passes.integers_as_floats import LimitedLayer
from netloop.model.layers.convolution import IConvolutionLayer
from netloop.model.layers.matrix import IMatrixMultiplyLayer
from netloop.model.layers.pointwise import ICastLayer
from netloop.model.layers.quantize import IQuantizeLayer
from netloop.model.nest import live_layers
from tests.support.devices import assert_allclose, only_on_cpus
from tests.support.examples import examples
from tests.support.networks import constant, mark
from tests.support.onnx_models import session_gives
from tests.support.pass_checks import count, improved
from tests.support.quantized_models import QuantizedGraph, quantized_block, quantized_blocks

pytestmark = only_on_cpus("the pass is not used elsewhere")

ONLY = ["integers_as_floats"]


def images(shape=(1, 6, 7, 8), seed=0):
    """The inputs of a block: ordinary numbers, ties, and numbers far beyond the range."""
    x = np.random.default_rng(seed).normal(0, 4, shape).astype(np.float32)
    x.flat[::7] = np.round(x.flat[::7] / 0.05) * np.float32(0.05) + np.float32(0.025)
    x.flat[::11] *= 1e6
    return {"x": x}


def integer_casts(network):
    return sum(isinstance(layer, ICastLayer) and layer.outputs[0].type.is_integer for layer in live_layers(network))


def gives(network, passes, inputs):
    return {name: np.asarray(value) for name, value in trt.compile(network, passes=passes)(inputs).items()}


@example(quantized_block(np.uint8, 3), 0)
@example(quantized_block(np.int8, -128, per_channel=False), 1)
@examples(10, nightly=200)
@given(quantized_blocks(), st.integers(0, 3))
def test_quantized_networks_have_the_same_reference(model, seed):
    network = netloop.onnx.load(model)
    made = improved(network, ONLY).network
    inputs = images(network.inputs[0].shape, seed)

    assert count(made, LimitedLayer) == 6
    assert not integer_casts(made)
    assert not count(made, IQuantizeLayer)
    for name, array in trt.evaluate(network, inputs).items():
        np.testing.assert_array_equal(trt.evaluate(made, inputs)[name], array)


def unoptimized(model, inputs):
    """The output of onnxruntime as it is defined: its optimizer multiplies integers, and rounds elsewhere."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # others would wait in busy loops
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"]).run(None, inputs)[
        0
    ]


@pytest.mark.parametrize("zero", [0, 7, 127])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_engine_agrees_with_onnxruntime_but_for_single_steps(dtype, zero):
    model, inputs = quantized_block(dtype, zero), images()
    found = gives(netloop.onnx.load(model), trt.PASSES, inputs)["y"]
    difference = np.abs(found - unoptimized(model, inputs))

    # a number next to the middle of two steps may be rounded to the other one, and the last sum is of steps of 0.9
    assert difference.max() < 0.9 + 1e-4
    assert (difference > 1e-4).mean() < 0.01


PAIRS = {"uint8": (np.uint8, 3), "int8": (np.int8, -3), "symmetric int8": (np.int8, 0), "uint8 from 0": (np.uint8, 0)}


@pytest.mark.parametrize("pair", PAIRS)
def test_pair_saturates_rounds_ties_to_even_and_has_no_nan(pair):
    dtype, zero = PAIRS[pair]
    graph = QuantizedGraph(dtype, zero)
    network = netloop.onnx.load(graph.model((8,), graph.add("Identity", graph.pair("x", 2.0), output="y")))
    x = np.array([1, 3, 5, -1, 1e30, -np.inf, np.nan, 2**25 + 8], np.float32)
    limits = np.iinfo(dtype)
    low, high = 2 * (limits.min - zero), 2 * (limits.max - zero)
    # NaN is quantized to 0, which represents the zero point below 0
    meant = np.clip([0, 4, 4, 0, np.inf, -np.inf, -2 * zero, np.inf], low, high)

    assert count(improved(network, ONLY).network, LimitedLayer)
    for passes in ([], ONLY):
        np.testing.assert_array_equal(gives(network, passes, {"x": x})["y"], meant)


def test_scales_of_an_axis_stay_with_it():
    graph = QuantizedGraph(np.int8, 0)
    given = graph.constant(np.array([1, 2, 4], np.float32)), graph.constant(np.zeros(3, np.int8))
    quantized = graph.add("QuantizeLinear", "x", *given, axis=1)
    y = graph.add("DequantizeLinear", quantized, *given, axis=1, output="y")
    network = netloop.onnx.load(graph.model((2, 3, 3), y))
    x = np.random.default_rng(0).normal(0, 9, (2, 3, 3)).astype(np.float32)
    made = improved(network, ONLY).network

    assert count(made, LimitedLayer) == 1
    np.testing.assert_array_equal(gives(network, ONLY, {"x": x})["y"], trt.evaluate(network, {"x": x})["y"])


# ---------------------------------------------------------------------------- products of integers


def product_of(length, low=0, high=255, dtype=np.int8, columns=3):
    """y: the product in int32 of x [4, length], rounded and limited, and a matrix of small weights."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (4, length))
    rounded = network.add_unary(x, trt.UnaryOperation.ROUND).get_output(0)
    clip = network.add_activation(rounded, trt.ActivationType.CLIP)
    clip.alpha, clip.beta = low, high
    whole = network.add_cast(clip.get_output(0), trt.int32).get_output(0)
    limits = np.iinfo(dtype)
    weights = np.random.default_rng(0).integers(limits.min, limits.max, (length, columns), dtype)
    matrix = network.add_cast(constant(network, weights, dtype), trt.int32).get_output(0)
    none = trt.MatrixOperation.NONE
    return mark(network, y=network.add_matrix_multiply(whole, none, matrix, none).get_output(0))


def is_float(network):
    made = improved(network, ONLY).network
    kinds = (IMatrixMultiplyLayer, IConvolutionLayer)
    return [layer.outputs[0].type.is_float for layer in live_layers(made) if isinstance(layer, kinds)] == [True]


def test_product_whose_sums_stay_below_the_limit_is_one_of_floats():
    assert is_float(product_of(514))  # 514 * 255 * 128 is below 2^24
    assert not is_float(product_of(515))
    assert is_float(product_of(515, 0, 254))
    assert not is_float(product_of(2, 0, 1 << 10, np.int16))
    assert not is_float(product_of(4, 0, 255.5))
    assert not is_float(product_of(4, dtype=np.int32, columns=300))


@pytest.mark.parametrize("length", [1, 77, 514])
def test_largest_sums_are_exact(length):
    network = product_of(length)
    x = np.full((4, length), 255, np.float32)
    x[1:] = np.random.default_rng(1).uniform(-20, 300, (3, length))

    np.testing.assert_array_equal(gives(network, ONLY, {"x": x})["y"], trt.evaluate(network, {"x": x})["y"])


def test_numbers_that_are_not_rounded_are_cut_as_before():
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (4,))
    clip = network.add_activation(x, trt.ActivationType.CLIP)
    clip.alpha, clip.beta = -5, 5
    whole = network.add_cast(clip.get_output(0), trt.int32).get_output(0)
    mark(network, y=network.add_cast(whole, trt.float32).get_output(0))

    assert improved(network, ONLY).network is network


def test_conversion_that_wraps_is_left_alone():
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (4,))
    rounded = network.add_unary(x, trt.UnaryOperation.ROUND).get_output(0)
    clip = network.add_activation(rounded, trt.ActivationType.CLIP)
    clip.alpha, clip.beta = 0, 300
    whole = network.add_cast(clip.get_output(0), trt.int32).get_output(0)
    small = network.add_cast(whole, trt.int8).get_output(0)
    mark(network, y=network.add_cast(small, trt.float32).get_output(0))
    inputs = {"x": np.array([1, 127, 128, 300], np.float32)}

    np.testing.assert_array_equal(gives(network, ONLY, inputs)["y"], [1, 127, -128, 44])


def integer_model(bias):
    """y: a quantized convolution by the operator for it, with a bias in int32 or none."""
    random = np.random.default_rng(0)
    graph = QuantizedGraph(np.uint8, 120)
    scale, zero = graph.constant(np.float32(0.1)), graph.constant(np.uint8(120))
    kernel = graph.constant(random.integers(-127, 128, (5, 3, 3, 3)).astype(np.int8))
    of_kernel = graph.constant(random.uniform(0.01, 0.02, 5).astype(np.float32)), graph.constant(np.zeros(5, np.int8))
    made = graph.constant(np.float32(0.5)), graph.constant(np.uint8(100))
    added = [graph.constant(random.integers(-(1 << 20), 1 << 20, 5).astype(np.int32))] if bias else []
    quantized = graph.add("QuantizeLinear", "x", scale, zero)
    y = graph.add("QLinearConv", quantized, scale, zero, kernel, *of_kernel, *made, *added, pads=[1] * 4)
    return graph.model((1, 3, 6, 6), graph.add("DequantizeLinear", y, *made, output="y"))


@pytest.mark.parametrize("bias", [False, True])
def test_quantized_convolution_is_one_of_floats_and_equal(bias):
    model = integer_model(bias)
    network = netloop.onnx.load(model)
    inputs = {"x": np.random.default_rng(3).normal(0, 9, (1, 3, 6, 6)).astype(np.float32)}

    assert is_float(network)
    np.testing.assert_array_equal(gives(network, ONLY, inputs)["y"], trt.evaluate(network, inputs)["y"])
    assert_allclose(gives(network, trt.PASSES, inputs)["y"], session_gives(model, inputs)["y"], 0, 0.5001)


@pytest.mark.parametrize("bias", [False, True])
def test_bias_that_is_an_attribute_stays_with_integers(bias):
    random = np.random.default_rng(0)
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (1, 2, 4, 4))
    clip = network.add_activation(network.add_unary(x, trt.UnaryOperation.ROUND).get_output(0), trt.ActivationType.CLIP)
    clip.alpha, clip.beta = -9, 9
    whole = network.add_cast(clip.get_output(0), trt.int32).get_output(0)
    added = np.full(3, 1 << 25, np.int32) + np.arange(3, dtype=np.int32) if bias else None
    layer = network.add_convolution_nd(whole, 3, (3, 3), trt.Weights(), added)
    weights = constant(network, random.integers(-9, 9, (3, 2, 3, 3), np.int8), np.int8)
    layer.set_input(1, network.add_cast(weights, trt.int32).get_output(0))
    mark(network, y=layer.get_output(0))
    inputs = {"x": random.normal(0, 5, (1, 2, 4, 4)).astype(np.float32)}

    assert is_float(network) is not bias
    np.testing.assert_array_equal(gives(network, ONLY, inputs)["y"], trt.evaluate(network, inputs)["y"])


def test_refitted_scale_counts():
    graph = QuantizedGraph(np.uint8, 3)
    network = netloop.onnx.load(graph.model((4,), graph.add("Identity", graph.pair("x", 1.0), output="y")))
    engine = trt.compile(network)
    x = np.array([-200, -4, 5, 1000], np.float32)
    before = np.asarray(engine({"x": x})["y"]).tolist()
    refitter = trt.Refitter(engine, trt.Logger())
    assert refitter.set_named_weights("w0", trt.Weights(np.array(2, np.float32)))
    assert refitter.refit_cuda_engine()

    assert before == [-3, -3, 5, 252]
    assert np.asarray(engine({"x": x})["y"]).tolist() == [-6, -4, 4, 504]


def test_networks_without_quantization_are_left_alone():
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.int32, (4,))
    doubled = network.add_elementwise(x, x, trt.ElementWiseOperation.SUM).get_output(0)
    mark(network, y=network.add_cast(doubled, trt.float32).get_output(0))

    assert improved(network, ONLY).network is network
