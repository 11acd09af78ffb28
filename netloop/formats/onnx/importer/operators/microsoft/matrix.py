"""Matrices of onnxruntime (com.microsoft)."""

import numpy as np

from netloop.formats.onnx.importer.operators.convolution import centred
from netloop.formats.onnx.importer.operators.matrix import gemm, matmul_integer, scaled
from netloop.formats.onnx.importer.operators.microsoft import Maybe, NodeCall, microsoft
from netloop.formats.onnx.importer.operators.microsoft.pointwise import activated, fast_gelu
from netloop.formats.onnx.importer.operators.quantize import to_type
from netloop.model.formulas import FormulaBuilder
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.enums import (
    ElementWiseOperation,
    MatrixOperation,
    ReduceOperation,
    TopKOperation,
    TripLimit,
    UnaryOperation,
)
from netloop.values.types import UNKNOWN


@microsoft("FusedMatMul", "TransposeMatMul")
def fused_matmul(call: NodeCall, a: ITensor, b: ITensor) -> ITensor:
    """``alpha * A @ B``, with A and B optionally transposed, also along their batch axes."""
    a, b = (_transposed(call, tensor, side) for tensor, side in ((a, "A"), (b, "B")))
    return scaled(call, call.make.matmul(a, b), "alpha")


def _transposed(call: NodeCall, x: ITensor, side: str) -> ITensor:
    """A factor; its rows may be along its first axis, before the batch axes."""
    order = list(range(x.type.rank))
    if call.attribute(f"transBatch{side}", 0):
        order = [*order[1:-1], *order[:1], *order[-1:]]
    if call.attribute(f"trans{side}"):
        order[-2:] = order[:-3:-1]
    return call.make.transpose(x, order)


@microsoft("FusedGemm")
def fused_gemm(call: NodeCall, a: ITensor, b: ITensor, c: Maybe = None) -> ITensor:
    """An activation of ``alpha * A @ B + beta * C``, with A and B optionally transposed."""
    return activated(call, gemm(call, a, b, c), _activation_numbers(call))


def _activation_numbers(call: NodeCall) -> list[float]:
    """The alpha and beta of the activation that are given."""
    numbers = (call.attribute(f"activation_{name}") for name in ("alpha", "beta"))
    return [number for number in numbers if number is not None]


@microsoft("FusedMatMulActivation")
def fused_matmul_activation(call: NodeCall, a: ITensor, b: ITensor) -> ITensor:
    """An activation of ``alpha * A @ B``, with A and B optionally transposed, also along their batch axes."""
    return activated(call, fused_matmul(call, a, b), _activation_numbers(call))


@microsoft("GemmFastGelu")
def gemm_fast_gelu(call: NodeCall, x: ITensor, weights: ITensor, bias: Maybe = None) -> ITensor:
    """``FastGelu`` of a product plus a bias."""
    return fast_gelu(call, call.make.matmul(x, weights), bias)


@microsoft("CDist")
def distances(call: NodeCall, a: ITensor, b: ITensor) -> ITensor:
    """The distance of each row of A and each row of B, or its square."""
    make, metric = call.make, call.attribute("metric")
    require(metric in ("euclidean", "sqeuclidean"), f"metric is {metric!r}, but must be 'euclidean' or 'sqeuclidean'")
    away = make.sub(make.expand_dims(a, [1]), make.expand_dims(b, [0]))
    square = make.sum(make.mul(away, away), [2])
    return square if metric == "sqeuclidean" else make.unary(UnaryOperation.SQRT, square)


# ---------------------------------------------------------------------------- quantized


def unpacked(make: FormulaBuilder, packed: ITensor, bits: int) -> ITensor:
    """The numbers of a few bits in the bytes of the last axis, the lowest bits first; uint8."""
    require(bits in (2, 4, 8), f"bits is {bits}, but must be 2, 4 or 8")
    require(packed.type.rank > 0, f"the packed numbers are {packed.type}, but must have an axis")
    if bits == 8:
        return packed
    mask = np.uint8((1 << bits) - 1)
    shifted = [
        make.elementwise(ElementWiseOperation.SHIFT_RIGHT, packed, np.uint8(shift)) for shift in range(0, 8, bits)
    ]
    parts = make.stack(
        [make.elementwise(ElementWiseOperation.AND, tensor, mask) for tensor in shifted], packed.type.rank
    )
    lengths = [make.length(packed, axis) for axis in range(packed.type.rank)]
    return make.reshape(parts, [*lengths[:-1], make.times(lengths[-1], 8 // bits)])


@microsoft("MatMulNBits")
def matmul_n_bits(
    call: NodeCall,
    x: ITensor,
    packed: ITensor,
    scales: ITensor,
    zeros: Maybe = None,
    groups: Maybe = None,
    bias: Maybe = None,
) -> ITensor:
    """Product with a matrix of 2, 4 or 8 bits, whose columns have a scale and zero point for each block of rows.

    The bytes stay packed in the network: a compiled one unpacks them once, when it is loaded. The dequantization layer
    takes INT4 numbers, which have a byte each, and neither zero points nor groups of rows.
    """
    make, bits = call.make, call.attribute("bits")
    columns, rows, size = (call.attribute(name) for name in ("N", "K", "block_size"))
    require(min(columns, rows, size) > 0, f"N, K and block_size are {columns}, {rows} and {size}, but must be positive")
    blocks = -(-rows // size)
    whole = unpacked(make, make.reshape(packed, [columns, -1]), bits)
    factor = make.reshape(scales, [columns, blocks])
    zero = _zero_points(make, zeros, columns, blocks, bits, factor)
    if groups is None:
        spread = [make.expand_dims(tensor, [2]) for tensor in (factor, zero)]
        weights = _dequantized(make, make.reshape(whole, [columns, blocks, size]), *spread)
        weights = make.take_first(make.reshape(weights, [columns, blocks * size]), rows, 1)
    else:
        index = make.take_first(groups, rows)
        weights = _dequantized(
            make, make.take_first(whole, rows, 1), *(make.gather(tensor, index, 1) for tensor in (factor, zero))
        )
    product = make.matmul(x, make.transpose(make.cast(weights, x.type.dtype), [1, 0]))
    return product if bias is None else make.add(product, bias)


def _zero_points(make: FormulaBuilder, zeros: Maybe, columns: int, blocks: int, bits: int, scales: ITensor) -> ITensor:
    """The zero point of each block, of the type of the scales; packed ones fill whole bytes for each column."""
    if zeros is None:
        return make.full([columns, blocks], 1 << bits - 1, scales.type.dtype)
    if zeros.type.is_float:
        return make.reshape(zeros, [columns, blocks])
    return make.cast(
        make.take_first(unpacked(make, make.reshape(zeros, [columns, -1]), bits), blocks, 1), scales.type.dtype
    )


def _dequantized(make: FormulaBuilder, numbers: ITensor, scale: ITensor, zero: ITensor) -> ITensor:
    return make.mul(make.sub(make.cast(numbers, scale.type.dtype), zero), scale)


# fmt: off
BNB4 = {
    0: np.array([0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4], np.float32),
    1: np.array([
        -1, -0.6961928, -0.52507305, -0.39491749, -0.28444138, -0.18477343, -0.09105004, 0,
        0.0795803, 0.1609302, 0.2461123, 0.33791524, 0.44070983, 0.562617, 0.72295684, 1,
    ], np.float32),
}
# fmt: on
"""The numbers that 4 bits stand for: FP4, whose highest bit is the sign, and NF4."""


@microsoft("MatMulBnb4")
def matmul_bnb4(call: NodeCall, x: ITensor, packed: ITensor, scales: ITensor) -> ITensor:
    """Product with a matrix of 4-bit numbers of bitsandbytes, which have a scale for each block."""
    make, kind = call.make, call.attribute("quant_type")
    columns, rows, size = (call.attribute(name) for name in ("N", "K", "block_size"))
    require(kind in BNB4, f"quant_type is {kind}, but must be 0 for FP4 or 1 for NF4")
    require(call.attribute("transB") == 1, "transB is 0, but must be 1")
    table = BNB4[kind] if kind else np.concatenate([BNB4[0], -BNB4[0]])
    pairs = make.backwards(make.reshape(unpacked(make, make.flat(packed), 4), [-1, 2]), [1])  # the high bits are first
    numbers = make.gather(make.constant(table), make.cast(make.reshape(pairs, [-1]), np.int32))
    blocks = make.floor_div(make.arange(columns * rows), size)
    weights = make.mul(make.take_first(numbers, columns * rows), make.gather(make.flat(scales), blocks))
    product = make.cast(make.reshape(weights, [columns, rows]), x.type.dtype)
    return make.matmul(x, make.transpose(product, [1, 0]))


@microsoft("MatMulInteger16")
def matmul_integer_16(call: NodeCall, a: ITensor, b: ITensor) -> ITensor:
    """Product of 16-bit integers, in int32."""
    return matmul_integer(call, a, b)


@microsoft("MatMulIntegerToFloat")
def matmul_integer_to_float(
    call: NodeCall,
    a: ITensor,
    b: ITensor,
    scale_of_a: ITensor,
    scale_of_b: ITensor,
    zero_of_a: Maybe = None,
    zero_of_b: Maybe = None,
    bias: Maybe = None,
) -> ITensor:
    """Product of quantized matrices, as floating-point numbers, plus a bias."""
    make = call.make
    factor = make.mul(make.along(scale_of_a, 2, 1), make.along(scale_of_b, 2, 1))
    product = make.mul(make.cast(matmul_integer(call, a, b, zero_of_a, zero_of_b), factor.type.dtype), factor)
    return product if bias is None else make.add(product, bias)


@microsoft("DynamicQuantizeMatMul")
def dynamic_quantize_matmul(
    call: NodeCall, a: ITensor, b: ITensor, scale: ITensor, zero: Maybe = None, bias: Maybe = None
) -> ITensor:
    """Product of a matrix that is quantized by its range in each call, and a quantized one, plus a bias."""
    quantized, own, offset = dynamically_quantized(call.make, a)
    return matmul_integer_to_float(call, quantized, b, own, scale, offset, zero, bias)


def dynamically_quantized(make: FormulaBuilder, x: ITensor, each_row: bool = False) -> tuple[ITensor, ITensor, ITensor]:
    """``x`` as uint8, with the scale and zero point that follow from its range and 0, or from the range of each row."""
    axes = [x.type.rank - 1] if each_row else range(x.type.rank)
    least = make.minimum(make.reduce(ReduceOperation.MIN, x, axes, each_row), 0.0)
    most = make.maximum(make.reduce(ReduceOperation.MAX, x, axes, each_row), 0.0)
    span = make.sub(most, least)
    scale = make.where(make.equal(span, 0.0), 1.0, make.div(span, 255.0))
    zero = to_type(make, make.div(make.sub(0.0, least), scale), None, np.dtype(np.uint8), True)
    return to_type(make, make.div(x, scale), zero, np.dtype(np.uint8), True), scale, zero


@microsoft("QGemm")
def quantized_gemm(
    call: NodeCall,
    a: ITensor,
    scale_of_a: ITensor,
    zero_of_a: ITensor,
    b: ITensor,
    scale_of_b: ITensor,
    zero_of_b: ITensor,
    c: Maybe = None,
    scale: Maybe = None,
    zero: Maybe = None,
) -> ITensor:
    """``alpha * (A @ B + C)`` of quantized matrices, quantized unless the scale of the output is left out."""
    make = call.make
    ops = [MatrixOperation.TRANSPOSE if call.attribute(name) else MatrixOperation.NONE for name in ("transA", "transB")]
    factors = centred(make, a, zero_of_a), centred(make, b, zero_of_b, 0 if call.attribute("transB") else 1)
    product = make.output(make.network.add_matrix_multiply(factors[0], ops[0], factors[1], ops[1]))
    product = make.cast(product if c is None else make.add(product, c), np.float32)
    factor = make.mul(make.mul(scale_of_a, scale_of_b), call.attribute("alpha"))
    if scale is None:
        return make.mul(product, factor)
    wanted = a.type.dtype if zero is None else zero.type.dtype
    return to_type(make, make.mul(product, make.div(factor, scale)), zero, wanted, True)


@microsoft("Inverse")
def inverse(call: NodeCall, x: ITensor) -> ITensor:
    """The inverses of square matrices, by Gauss-Jordan elimination with pivoting: a loop over their columns."""
    make, rank = call.make, x.type.rank
    require(rank >= 2 and x.type.is_float, f"the input is {x.type}, but must be matrices of floating-point numbers")
    size = make.length(x, rank - 1)
    wide = make.reshape(make.cast(x, np.float32) if x.type.dtype.itemsize < 4 else x, [UNKNOWN, size, size])
    rows = make.arange(size)
    unit = make.cast(make.equal(make.expand_dims(rows, [1]), rows), wide.type.dtype)
    shape = make.list_tensor([make.length(wide, 0), size, size])
    loop = make.network.add_loop()
    loop.name = call.node.name
    loop.add_trip_limit(make.tensor(size), TripLimit.COUNT)
    carried = loop.add_recurrence(make.concat([wide, make.broadcast_to(unit, shape)], 2))
    carried.set_input(1, _eliminated(make, carried.outputs[0], make.counter(loop).outputs[0], rows))
    right = make.slice(make.last(loop, carried), [size], [size], axes=[2])
    return make.cast(make.reshape(right, make.shape(x)), x.type.dtype)


def _eliminated(make: FormulaBuilder, both: ITensor, column: ITensor, rows: ITensor) -> ITensor:
    """Matrices, each next to the one that becomes its inverse, after the elimination of a column."""
    sizes = make.unary(UnaryOperation.ABS, make.gather(both, column, 2))
    sizes = make.where(make.less(rows, column), -1.0, sizes)
    _, largest = make.best(TopKOperation.MAX, sizes, 1, 1)
    pivot = make.gather_nd(both, largest, batch_axes=1)
    pivot = make.expand_dims(make.div(pivot, make.expand_dims(make.gather(pivot, column, 1), [1])), [1])
    is_pivot, is_own = make.expand_dims(make.equal(rows, largest), [2]), make.expand_dims(make.equal(rows, column), [1])
    own = make.expand_dims(make.gather(both, column, 1), [1])
    swapped = make.where(is_pivot, own, both)
    factors = make.expand_dims(make.gather(swapped, column, 2), [2])
    return make.where(is_own, pivot, make.sub(swapped, make.mul(factors, pivot)))
