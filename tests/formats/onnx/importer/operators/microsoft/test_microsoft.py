"""Operators of onnxruntime that select, generate or move numbers, and whole models that onnxruntime writes."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper
from onnxruntime import quantization

import netloop
from tests.support.microsoft import MICROSOFT, bytes_of, check_like_onnxruntime, floats
from tests.support.onnx_models import check_node, model, of_node

X = floats(2, 3)
IMAGE, GRID = floats(1, 2, 6, 6), floats(1, 3, 2, 2)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [
        ("Range", (np.int64(1), np.int64(7)), {}),
        ("Range", (np.float32(1), np.float32(3), np.float32(0.5)), {}),
        ("ExpandDims", (X, np.int32(-1)), {}),
        ("ExpandDims", (X, np.int32(1)), {}),
        ("Pad", (X, np.array([0, 1, 0, 1]), np.float32([5])), {}),
        ("Pad", (X, np.array([[0, 1, 0, 1]])), {"mode": "reflect"}),
        ("Trilu", (floats(3, 3),), {}),
        ("Trilu", (floats(3, 3), np.int64(1)), {"upper": 0}),
        ("GatherND", (X, np.array([[0, 1], [1, 2]])), {}),
        ("GridSample", (IMAGE, GRID), {}),
        ("GridSample", (IMAGE, GRID), {"mode": "nearest", "padding_mode": "border", "align_corners": 1}),
        ("UnfoldTensor", (floats(2, 7, 3),), {"dim": 1, "size": 3, "step": 2}),
        ("UnfoldTensor", (floats(2, 7),), {"size": 2}),
        ("NGramRepeatBlock", (np.array([[1, 2, 3, 1, 2], [4, 4, 4, 4, 4]]), floats(2, 6)), {"ngram_size": 3}),
        ("NGramRepeatBlock", (np.array([[1, 2, 3]]), floats(1, 6)), {"ngram_size": 2}),
        ("NGramRepeatBlock", (np.array([[1, 2, 3]]), floats(1, 6)), {"ngram_size": 4}),
    ],
    ids=str,
)
def test_operator_is_that_of_onnxruntime(op, inputs, attributes):
    check_node(op, *inputs, **attributes, **MICROSOFT)


@pytest.mark.parametrize("op", ["UnfoldTensor", "NGramRepeatBlock"])
def test_lengths_may_be_open(op):
    inputs = (floats(2, 7),) if op == "UnfoldTensor" else (bytes_of(2, 9, most=3).astype(np.int64), floats(2, 6))
    check_node(
        op, *inputs, open_lengths=True, **({"size": 3} if op == "UnfoldTensor" else {"ngram_size": 2}), **MICROSOFT
    )


def test_unique_elements_are_in_order_of_appearance():
    check_node("Unique", np.float32([3, 1, 3, 2, 1]), outputs=3, **MICROSOFT)


HUGE = 1 << 40


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "what"),
    [
        ("FusedConv", (IMAGE, floats(3, 2, 1, 1)), {"activation": "Relu", "activation_params": [1.0]}, "1 numbers"),
        ("FusedConv", (IMAGE, floats(3, 2, 1, 1)), {"activation": "Clip"}, "0 numbers, but must have 2"),
        ("GatherBlockQuantized", (np.uint8(1), np.int64(0), X), {}, "axis"),
        ("MatMulNBits", (X, bytes_of(4), X), {"N": HUGE, "K": 3, "block_size": 16}, "reshape"),
        ("RelativePositionBias", (X, np.array([2]), np.array([2])), {"max_distance": 0}, "max_distance 0"),
        ("UnfoldTensor", (X,), {"size": HUGE}, "axis 1 of the input is 3 long"),
    ],
    ids=str,
)
def test_bad_numbers_are_errors_of_the_model(op, inputs, attributes, what):
    made, _ = of_node(op, *inputs, **attributes, **MICROSOFT)
    with pytest.raises(netloop.ModelError, match=what):
        netloop.onnx.load(made)


# ---------------------------------------------------------------------------- models

NETWORK = """
    network (float[N, 3, 8, 8] image, float[N, 4, 6] rows) => (float[N, 5] left, float[N, 4, 6] right)
    <float half = {0.5}, float one = {1.0}, float root = {1.41421356}, float share = {0.4}>
    {
        first = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (image, kernel, kernel_bias)
        slope = LeakyRelu <alpha = 0.1> (first)
        second = Conv (slope, pointwise, kernel_bias)
        both = Add (second, slope)
        positive = Relu (both)
        pooled = AveragePool <kernel_shape = [2, 2], strides = [2, 2]> (positive)
        flat = Flatten (pooled)
        affine = Gemm (flat, weights, bias)
        left = Relu (affine)

        product = MatMul (rows, square)
        biased = Add (product, offset)
        quotient = Div (biased, root)
        error = Erf (quotient)
        above = Add (error, one)
        twice = Mul (biased, above)
        gelu = Mul (twice, half)
        skip = Add (gelu, rows)
        normal = LayerNormalization <axis = -1> (skip, offset, offset)
        keys = Transpose <perm = [0, 2, 1]> (normal)
        pairs = MatMul (normal, keys)
        scores = Mul (pairs, share)
        shares = Softmax (scores)
        right = MatMul (shares, normal)
    }
"""
SHAPES = {
    "kernel": (4, 3, 3, 3), "kernel_bias": (4,), "pointwise": (4, 4, 1, 1), "weights": (16, 5), "bias": (5,),
    "square": (6, 6), "offset": (6,),
}  # fmt: skip
INPUTS = {"image": floats(2, 3, 8, 8), "rows": floats(2, 4, 6)}


@pytest.fixture
def path(tmp_path):
    made = model(NETWORK)
    made.graph.initializer.extend(numpy_helper.from_array(floats(*shape), name) for name, shape in SHAPES.items())
    onnx.save(made, tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def optimized(path):
    """The model as onnxruntime optimizes it."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(path.with_name("optimized.onnx"))
    onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return onnx.load(options.optimized_model_filepath)


def own_operators(made):
    return {attribute.op_type for attribute in made.graph.node if attribute.domain == "com.microsoft"}


def test_model_that_onnxruntime_optimized_is_imported(path):
    made = optimized(path)

    assert own_operators(made) >= {"FusedConv", "FusedGemm", "BiasGelu", "SkipLayerNormalization", "FusedMatMul"}
    check_like_onnxruntime(made, INPUTS, rtol=1e-4, atol=1e-5)


class Samples(quantization.CalibrationDataReader):
    """Inputs from which onnxruntime takes ranges."""

    def __init__(self):
        self._left = [{name: floats(*input_.shape, seed=seed) for name, input_ in INPUTS.items()} for seed in range(4)]

    def get_next(self):
        return self._left.pop() if self._left else None


@pytest.mark.slow
def test_model_that_onnxruntime_quantized_gives_the_same_numbers(path):
    quantized = path.with_name("quantized.onnx")
    quantization.quantize_static(str(path), str(quantized), Samples(), quant_format=quantization.QuantFormat.QOperator)
    made = onnx.load(quantized)

    assert own_operators(made) >= {"QLinearAdd", "QLinearMul", "QLinearAveragePool", "QGemm", "QLinearSoftmax"}
    check_like_onnxruntime(made, INPUTS, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_model_that_onnxruntime_quantizes_in_each_call_is_imported(path):
    quantized = path.with_name("quantized.onnx")
    quantization.quantize_dynamic(str(path), str(quantized))
    made = optimized(quantized)

    assert own_operators(made) >= {"DynamicQuantizeMatMul"}
    check_like_onnxruntime(made, INPUTS, rtol=1e-4, atol=1e-5)
