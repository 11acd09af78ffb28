"""Embeddings of onnxruntime."""

import numpy as np
import pytest

from tests.support.microsoft import MICROSOFT, as_constants, bytes_of, check_like_onnxruntime, floats, scalars
from tests.support.onnx_models import check_node, of_node


def ints(*numbers):
    return np.array(numbers, np.int32)


WORDS, SEGMENTS, MASK = ints([0, 1, 2], [3, 1, 0]), ints([0, 1, 1], [0, 0, 1]), ints([0, 1, 0], [1, 1, 1])
TABLES, SCALES = [floats(rows, 4) for rows in (5, 6, 2)], floats(2, 4)


@pytest.mark.parametrize("rest", [(), (MASK,), (MASK, ints([2, 1, 0], [0, 4, 5]))], ids=len)
def test_embed_layer_normalization_is_that_of_onnxruntime(rest):
    check_node(
        "EmbedLayerNormalization", WORDS, SEGMENTS, *TABLES, *SCALES, *rest, outputs=3, epsilon=0.01, rtol=1e-4,
        **MICROSOFT
    )  # fmt: skip


def test_numbers_of_sequences_and_words_may_be_open():
    made, given = of_node(
        "EmbedLayerNormalization", WORDS, SEGMENTS, *TABLES, *SCALES, MASK, outputs=3, open_lengths=True, **MICROSOFT
    )
    as_constants(made, given, [f"x{number}" for number in range(2, 7)])
    check_like_onnxruntime(made, given, rtol=1e-4)


def test_segments_may_be_left_out():
    check_node(
        "EmbedLayerNormalization", WORDS, None, *TABLES[:2], None, *SCALES, MASK, outputs=3, rtol=1e-4, atol=1e-5,
        **MICROSOFT
    )  # fmt: skip


@pytest.mark.parametrize("with_segments", [False, True])
def test_quantized_tables_are_those_of_onnxruntime(with_segments):
    tables = [bytes_of(rows, 4) for rows in (5, 6, 2)]
    scales, zeros = scalars(0.01, 0.02, 0.03, 0.04, 0.05), [np.uint8(index) for index in range(5)]
    segments = SEGMENTS
    if not with_segments:
        segments = tables[2] = scales[2] = zeros[2] = None
    check_node(
        "QEmbedLayerNormalization", WORDS, segments, *tables, bytes_of(4), bytes_of(4, seed=1), MASK, *scales, *zeros,
        outputs=2, rtol=1e-4, atol=1e-5, **MICROSOFT
    )  # fmt: skip
