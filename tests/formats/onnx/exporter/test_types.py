"""Every element type, and integers of every width, in onnxruntime."""

import numpy as np
import pytest
from onnx import numpy_helper

import netloop as trt
from netloop.formats.onnx.exporter.proto import tensor
from netloop.model.layers.pointwise import IActivationLayer, ICastLayer, IElementWiseLayer, IUnaryLayer
from netloop.values.enums import ActivationType
from netloop.values.types import INTEGERS, NUMPY_TYPES, TINY, data_type
from tests.model.layers.test_integers import ARITHMETIC, UNARY, WIDTHS, Op, divisors, edges, table
from tests.support.laws import Case
from tests.support.networks import mark
from tests.support.onnx_runtime import export, run

SHIFTS = {Op.SHIFT_LEFT: lambda a, b: a << b, Op.SHIFT_RIGHT: lambda a, b: a >> b}
TYPES = list(trt.DataType)


def together(cases: list[Case]) -> None:
    """Check that the layers of all cases, in one network, compute the expected arrays."""
    network, arrays = trt.INetworkDefinition(), {}
    for number, case in enumerate(cases):
        tensors = []
        for position, array in enumerate(case.inputs):
            arrays[f"x{number}.{position}"] = array
            tensors.append(network.add_input(f"x{number}.{position}", data_type(array.dtype), array.shape))
        mark(network, **{f"y{number}": network.add(case.fresh_layer(), tensors).get_output(0)})
    got = run(export(network), arrays)
    for number, case in enumerate(cases):
        np.testing.assert_array_equal(got[f"y{number}"], case.expected, case.name, strict=True)


@pytest.mark.parametrize("dtype", WIDTHS, ids=str)
def test_integers_wrap(dtype):
    bits = 8 * dtype.itemsize
    binary = [
        table(op, function, dtype, divisors(op, dtype)) for op, function in ARITHMETIC.items() if op is not Op.POW
    ]
    shifts = [table(op, function, dtype, [0, 1, bits - 1, bits, bits + 1]) for op, function in SHIFTS.items()]
    x = np.array(edges(dtype), dtype)
    unary = [Case(op.name, IUnaryLayer(op=op), (x,), IUnaryLayer(op=op).evaluate(x)) for op in UNARY]
    relu = Case("RELU", IActivationLayer(type=ActivationType.RELU), (x,), np.maximum(x, 0))

    together([*binary, *shifts, *unary, relu])


@pytest.mark.parametrize("dtype", WIDTHS, ids=str)
def test_powers_of_integers(dtype):
    a, b = np.array([[0], [1], [2], [3]], dtype), np.array([[0, 1, 3, 4]], dtype)

    together([Case("POW", IElementWiseLayer(op=Op.POW), (a, b), a**b)])


@pytest.mark.parametrize("dtype", [width for width in WIDTHS if width.kind == "i"], ids=str)
def test_shift_by_a_negative_number_counts_as_one_of_all_bits(dtype):
    a, b = np.array([5, -5], dtype), np.array([-1, -40], dtype)

    together([
        Case("left", IElementWiseLayer(op=Op.SHIFT_LEFT), (a, b), np.array([0, 0], dtype)),
        Case("right", IElementWiseLayer(op=Op.SHIFT_RIGHT), (a, b), np.array([0, -1], dtype)),
    ])  # fmt: skip


@pytest.mark.parametrize("to_type", [type_ for type_ in TYPES if type_ is not trt.fp4], ids=str)
def test_every_type_is_converted_to_every_other(to_type):
    """Without FP4, for which onnxruntime has no kernels."""
    layer = ICastLayer(to_type=to_type)
    numbers = [1, 1, 1] if to_type is trt.e8m0 else [0, 1, 1]
    others = [type_ for type_ in TYPES if type_ not in (trt.fp4, trt.e8m0, to_type)]
    given = [np.array(numbers).astype(NUMPY_TYPES[other]) for other in others]

    together([Case(str(array.dtype), layer, (array,), layer.evaluate(array)) for array in given])


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_floats_beyond_an_integer_become_its_ends(dtype):
    x = np.array([-np.inf, -6e4, -200.5, -1.5, -0.5, 0.5, 2.5, 200.5, 6e4, np.inf, np.nan]).astype(dtype)
    layers = [ICastLayer(to_type=type_) for type_ in TYPES if NUMPY_TYPES[type_] in INTEGERS | TINY]

    together([Case(str(layer.to_type), layer, (x,), layer.evaluate(x)) for layer in layers])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_beyond_wide_integers_become_their_ends(dtype):
    x = np.array([-1e20, -1e10, 1e10, 1e20]).astype(dtype)
    layers = [ICastLayer(to_type=type_) for type_ in TYPES if NUMPY_TYPES[type_] in INTEGERS]

    together([Case(str(layer.to_type), layer, (x,), layer.evaluate(x)) for layer in layers])


@pytest.mark.parametrize("dtype", [trt.int2, trt.uint2, trt.int4, trt.uint4, trt.fp4], ids=str)
@pytest.mark.parametrize("length", [0, 1, 4, 7])
def test_small_numbers_are_packed(dtype, length):
    array = (np.arange(length) % 2).astype(NUMPY_TYPES[dtype])
    made = tensor("x", array)

    np.testing.assert_array_equal(numpy_helper.to_array(made).astype(np.float32), array.astype(np.float32))
