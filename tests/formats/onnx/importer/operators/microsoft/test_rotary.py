"""Rotary embeddings of onnxruntime."""

import numpy as np
import pytest

from tests.support.microsoft import MICROSOFT, floats, slow
from tests.support.onnx_models import check_node

BATCH, TOKENS, HEADS, ELEMENTS = 2, 3, 2, 8
COS, SIN = (nout1(floats(10, ELEMENTS // 2)) for nout1 in (np.cos, np.sin))
POSITIONS = np.array([[0, 1, 2], [4, 5, 6]])
ROWS, BY_HEAD = floats(BATCH, TOKENS, HEADS * ELEMENTS), floats(BATCH, HEADS, TOKENS, ELEMENTS)


@pytest.mark.parametrize("interleaved", [slow(0), 1])
@pytest.mark.parametrize("positions", [POSITIONS, np.array([3])], ids=["each", "first"])
@pytest.mark.parametrize("x", [ROWS, BY_HEAD], ids=["rows", "heads"])
def test_rotary_embedding_is_that_of_onnxruntime(x, positions, interleaved):
    check_node("RotaryEmbedding", x, positions, COS, SIN, interleaved=interleaved, **MICROSOFT)


@pytest.mark.parametrize("x", [ROWS, BY_HEAD], ids=["rows", "heads"])
def test_some_elements_may_stay(x):
    check_node(
        "RotaryEmbedding", x, POSITIONS, COS[:, :2], SIN[:, :2], rotary_embedding_dim=4, num_heads=HEADS, **MICROSOFT
    )


def test_rotary_embedding_of_open_lengths_is_that_of_onnxruntime():
    check_node("RotaryEmbedding", ROWS, POSITIONS, COS, SIN, open_lengths=True, **MICROSOFT)


def test_rotary_embedding_of_halves_is_that_of_onnxruntime():
    halves = [array.astype(np.float16) for array in (ROWS, COS, SIN)]
    check_node("RotaryEmbedding", halves[0], POSITIONS, *halves[1:], rtol=1e-3, atol=1e-3, **MICROSOFT)


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("x", [ROWS, BY_HEAD], ids=["rows", "heads"])
def test_token_may_have_three_positions(x, layout):
    positions = np.random.default_rng(0).integers(0, 10, (3, BATCH, TOKENS))
    check_node(
        "MRotaryEmbedding", x, positions, COS, SIN, mrope_section=[2, 1, 1], mrope_layout=layout, num_heads=HEADS,
        **MICROSOFT
    )  # fmt: skip
