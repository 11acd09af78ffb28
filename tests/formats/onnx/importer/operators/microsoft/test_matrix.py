"""Products of matrices of onnxruntime."""

from itertools import product

import numpy as np
import pytest

from tests.support.microsoft import MICROSOFT, bytes_of, floats, scalars, slow
from tests.support.onnx_models import check_node, of_node, runs

LEFT, RIGHT = floats(2, 3, 4), floats(2, 4, 5, seed=1)


def swapped(x, transposed, batch_first):
    """The factor that the attributes turn into ``x``."""
    x = x.swapaxes(-1, -2) if transposed else x
    return np.moveaxis(x, -2, 0) if batch_first else x


@pytest.mark.parametrize("op", ["FusedMatMul", "TransposeMatMul"])
@pytest.mark.parametrize(("left", "right"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_factors_are_transposed_like_those_of_onnxruntime(op, left, right):
    factors = swapped(LEFT, left, False), swapped(RIGHT, right, False)
    check_node(op, *factors, transA=left, transB=right, alpha=0.5, **MICROSOFT)


@pytest.mark.parametrize(("left", "right"), [(0, 1), (1, 0), (1, 1)])
def test_batch_axes_are_moved_like_those_of_onnxruntime(left, right):
    wide = [np.broadcast_to(array, (3, *array.shape)) for array in (LEFT, RIGHT)]
    factors = swapped(wide[0], left, left), swapped(wide[1], right, right)
    check_node(
        "FusedMatMul", *factors, transA=left, transB=right, transBatchA=left, transBatchB=right,
        open_lengths=True, **MICROSOFT
    )  # fmt: skip


@pytest.mark.parametrize(
    ("activation", "numbers"),
    [("Relu", {}), ("LeakyRelu", {"activation_alpha": 0.2}), ("Tanh", {}), ("Sigmoid", {}),
     ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4})],
)  # fmt: skip
def test_fused_gemm_is_that_of_onnxruntime(activation, numbers):
    check_node(
        "FusedGemm", LEFT[0].T, RIGHT[0], floats(5), transA=1, alpha=0.5, beta=2.0, activation=activation,
        **numbers, **MICROSOFT
    )  # fmt: skip


# ---------------------------------------------------------------------------- weights of few bits


def blocks_of(columns, rows, size, bits):
    """Packed weights, scales and packed zero points of a matrix."""
    count = -(-rows // size)
    packed = bytes_of(columns, count, size * bits // 8)
    zeros = bytes_of(columns, -(-count * bits // 8), seed=1)
    return packed, np.abs(floats(columns, count)) / 16, zeros


@pytest.mark.parametrize(("rows", "size"), [(32, 16), (50, 32)])
@pytest.mark.parametrize(
    ("bits", "zeros"),
    [
        (4, "none"),
        (4, "packed"),
        (4, "floats"),
        *(slow(*entry) for entry in product((2, 8), ("none", "packed"))),
        slow(2, "floats"),
    ],
)  # onnxruntime refuses 8 bits with zero points that are floating-point
def test_matmul_n_bits_is_that_of_onnxruntime(rows, size, bits, zeros):
    packed, scales, own = blocks_of(6, rows, size, bits)
    given = {"none": None, "packed": own, "floats": floats(*scales.shape) + 3}[zeros]
    check_node(
        "MatMulNBits", floats(2, 3, rows), packed, scales, given, K=rows, N=6, bits=bits, block_size=size,
        rtol=1e-4, atol=1e-4, **MICROSOFT
    )  # fmt: skip


def test_matmul_n_bits_adds_a_bias():
    packed, scales, zeros = blocks_of(6, 32, 16, 4)
    check_node(
        "MatMulNBits", floats(3, 32), packed, scales, zeros, None, floats(6), K=32, N=6, bits=4, block_size=16,
        rtol=1e-4, atol=1e-4, **MICROSOFT
    )  # fmt: skip


def test_rows_of_matmul_n_bits_have_the_groups_of_onnxruntime():
    packed, scales, _ = blocks_of(6, 32, 16, 4)
    groups = np.random.default_rng(2).integers(0, 2, 32).astype(np.int32)
    check_node(
        "MatMulNBits", floats(3, 32), packed, scales, None, groups, K=32, N=6, bits=4, block_size=16,
        rtol=1e-4, atol=1e-4, **MICROSOFT
    )  # fmt: skip


def test_zero_points_of_matmul_n_bits_count_with_groups():
    """onnxruntime ignores them there."""
    packed, scales, zeros = blocks_of(6, 32, 16, 4)
    groups, x = np.random.default_rng(2).integers(0, 2, 32).astype(np.int32), floats(3, 32)
    (found,) = runs(*of_node("MatMulNBits", x, packed, scales, zeros, groups, K=32, N=6, block_size=16, **MICROSOFT))
    numbers, points = (np.stack([array & 15, array >> 4], -1).reshape(6, -1).astype(float) for array in (packed, zeros))

    np.testing.assert_allclose(found, x @ ((numbers - points[:, groups]) * scales[:, groups]).T, rtol=1e-4, atol=1e-4)


def test_scales_and_zero_points_of_matmul_n_bits_may_be_flat():
    packed, scales, zeros = blocks_of(6, 48, 16, 4)
    check_node(
        "MatMulNBits", floats(3, 48), packed, scales.reshape(-1), zeros.reshape(-1), K=48, N=6, bits=4,
        block_size=16, rtol=1e-4, atol=1e-4, **MICROSOFT
    )  # fmt: skip


def test_matmul_n_bits_of_halves_is_that_of_onnxruntime():
    packed, scales, zeros = blocks_of(6, 32, 16, 4)
    halves = floats(3, 32).astype(np.float16)
    check_node(
        "MatMulNBits", halves, packed, scales.astype(np.float16), zeros, K=32, N=6, bits=4, block_size=16,
        rtol=2e-2, atol=2e-2, **MICROSOFT
    )  # fmt: skip


# ---------------------------------------------------------------------------- quantized


@pytest.mark.parametrize("types", [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
def test_matmul_integer_to_float_is_that_of_onnxruntime(types):
    left, right = bytes_of(3, 4, dtype=types[0]), bytes_of(4, 5, dtype=types[1], seed=1)
    zeros = [np.array([3], type_) for type_ in types]
    check_node("MatMulIntegerToFloat", left, right, *scalars(0.1, 0.2), *zeros, floats(5), **MICROSOFT)
    check_node("MatMulIntegerToFloat", left, right, scalars(0.1)[0], np.abs(floats(5)), **MICROSOFT)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_dynamic_quantize_matmul_is_that_of_onnxruntime(dtype):
    right = bytes_of(4, 5, dtype=dtype)
    check_node("DynamicQuantizeMatMul", LEFT, right, *scalars(0.1), np.array([3], dtype), floats(5), **MICROSOFT)
    check_node("DynamicQuantizeMatMul", LEFT, right, np.abs(floats(5)), bytes_of(5, dtype=dtype), **MICROSOFT)


def test_matmul_integer_16_is_that_of_onnxruntime():
    left, right = (bytes_of(*shape, dtype=np.int16) for shape in ((3, 4), (4, 5)))
    check_node("MatMulInteger16", left, right, **MICROSOFT)


@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("transposed", [slow(0), 1])
def test_quantized_gemm_is_that_of_onnxruntime(quantized, dtype, transposed):
    left, right = bytes_of(3, 4, dtype=dtype), bytes_of(4, 5, dtype=np.int8, seed=1)
    scales, zeros = (np.abs(floats(5)), bytes_of(5, dtype=np.int8)) if transposed else (0.02, np.int8(-3))
    output = (np.float32(1.5), dtype(100)) if quantized else ()
    check_node(
        "QGemm",
        *(left.T if transposed else left, np.float32(0.1), dtype(7)),
        *(right.T if transposed else right, np.float32(scales), zeros),
        bytes_of(5, dtype=np.int32, most=1000), *output, transA=transposed, transB=transposed, alpha=0.5, **MICROSOFT
    )  # fmt: skip


# ---------------------------------------------------------------------------- other products


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize(("rows", "columns", "size"), [slow(32, 3, 16), (5, 7, 16)])
def test_matmul_bnb4_is_that_of_onnxruntime(rows, columns, size, kind):
    packed = bytes_of(-(-rows * columns // 2))
    scales = np.abs(floats(-(-rows * columns // size)))
    check_node(
        "MatMulBnb4", floats(2, rows), packed, scales, K=rows, N=columns, block_size=size, quant_type=kind,
        rtol=1e-4, atol=1e-5, **MICROSOFT
    )  # fmt: skip


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distances_are_those_of_onnxruntime(dtype, metric):
    a, b = floats(3, 4).astype(dtype), floats(5, 4).astype(dtype)
    check_node("CDist", a, b, metric=metric, rtol=1e-4, open_lengths=True, **MICROSOFT)


def test_product_may_have_an_activation():
    """onnxruntime has no kernel for it on CPUs."""
    given = LEFT[0], RIGHT[0].T
    made = of_node("FusedMatMulActivation", *given, transB=1, alpha=0.5, activation="Relu", **MICROSOFT)
    plain = of_node("FusedMatMul", *given, transB=1, alpha=0.5, **MICROSOFT)

    np.testing.assert_allclose(runs(*made)[0], np.maximum(runs(*plain)[0], 0))


def test_gemm_fast_gelu_is_fast_gelu_of_the_product():
    """onnxruntime has no kernel for it on CPUs."""
    bias = floats(5)
    (found,) = runs(*of_node("GemmFastGelu", LEFT[0], RIGHT[0], bias, **MICROSOFT))
    (expected,) = runs(*of_node("FastGelu", LEFT[0] @ RIGHT[0], bias, **MICROSOFT))

    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("dtype", "atol"), [(np.float32, 1e-6), (np.float64, 1e-12), (np.float16, 3e-3)])
def test_inverse_is_that_of_onnxruntime(dtype, atol):
    # onnxruntime computes half types in half precision
    check_node("Inverse", (floats(2, 3, 4, 4) + 3 * np.eye(4)).astype(dtype), rtol=1e-5, atol=atol, **MICROSOFT)


def test_inverse_needs_no_order_of_rows():
    check_node("Inverse", np.float32([[0, 0, 2], [1, 0, 0], [0, 4, 0]]), **MICROSOFT)
