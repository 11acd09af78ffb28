"""Gathers of onnxruntime."""

import ml_dtypes
import numpy as np
import pytest

from tests.support.microsoft import MICROSOFT, as_constants, bytes_of, check_like_onnxruntime, floats, slow
from tests.support.onnx_models import check_node, of_node, runs

INDICES = np.array([[0, 3, 1], [2, 2, 0]])


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("bits", [4, slow(8)])
@pytest.mark.parametrize("indices", [INDICES, np.array(2)], ids=["table", "scalar"])
def test_packed_rows_are_those_of_onnxruntime(indices, bits, zeros):
    packed, scales = bytes_of(4, 32 * bits // 8), floats(4, 2)
    points = bytes_of(4, 2 * bits // 8, seed=1) if zeros else None
    check_node(
        "GatherBlockQuantized", packed, indices, scales, points, bits=bits, block_size=16, gather_axis=0,
        quantize_axis=1, rtol=1e-5, **MICROSOFT
    )  # fmt: skip


@pytest.mark.parametrize("axes", [(0, 1), (1, 0)], ids=str)
def test_rows_of_small_integers_are_those_of_onnxruntime(axes):
    numbers = np.random.default_rng(0).integers(-8, 8, (32, 32)).astype(ml_dtypes.int4)
    scales = floats(32, 2) if axes[1] else floats(2, 32)
    made, given = of_node(
        "GatherBlockQuantized", numbers, INDICES, scales.astype(np.float16), block_size=16, gather_axis=axes[0],
        quantize_axis=axes[1], **MICROSOFT
    )  # fmt: skip
    as_constants(made, given, ["x0"])
    check_like_onnxruntime(made, given, rtol=1e-3)


def test_torch_embedding_selects_rows():
    """onnxruntime has no kernel for it on CPUs."""
    table = floats(5, 3)

    np.testing.assert_array_equal(runs(*of_node("TorchEmbedding", table, INDICES, **MICROSOFT))[0], table[INDICES])
