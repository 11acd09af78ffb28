"""Embedding of onnxruntime (com.microsoft)."""

from collections.abc import Sequence
from functools import reduce

import numpy as np

from netloop.formats.onnx.importer.operators.microsoft import Maybe, NodeCall, microsoft
from netloop.formats.onnx.importer.operators.microsoft.quantize import floats_of
from netloop.formats.onnx.importer.operators.normalization import layer_normalized, wide_of
from netloop.formats.shared.import_errors import present
from netloop.model.graph.tensor import ITensor


@microsoft("EmbedLayerNormalization")
def embed_layer_normalization(
    call: NodeCall,
    words: ITensor,
    segments: Maybe,
    word_table: ITensor,
    position_table: ITensor,
    segment_table: Maybe,
    scale: ITensor,
    offset: ITensor,
    mask: Maybe = None,
    positions: Maybe = None,
) -> list[ITensor]:
    """Layer normalization of the sum of the embeddings of words, positions and segments.

    Also the number of ones in each row of the mask, and the sum.
    """
    tables = word_table, position_table, segment_table
    rows = [wide_of(call.make, row) for row in _rows(call, tables, words, segments, positions)]
    factors = wide_of(call.make, scale), wide_of(call.make, offset)
    normal, counts, total = _normalized(call, words, rows, factors, mask)
    return [call.make.cast(normal, scale.type.dtype), counts, call.make.cast(total, scale.type.dtype)]


def _rows(
    call: NodeCall, tables: Sequence[Maybe], words: ITensor, segments: Maybe, positions: Maybe = None
) -> list[ITensor]:
    """The rows of the tables of words, positions and, if there is one, segments."""
    make = call.make
    indices = [words, make.arange(make.length(words, 1)) if positions is None else positions, segments]
    pairs = zip(tables, indices, strict=True)
    return [make.gather(table, index) for table, index in pairs if table is not None and index is not None]


def _normalized(
    call: NodeCall, words: ITensor, rows: Sequence[ITensor], factors: tuple[ITensor, ITensor], mask: Maybe
) -> list[ITensor]:
    """The normalized sum of rows, the number of ones in each row of the mask, and the sum."""
    make, total = call.make, reduce(call.make.add, rows)
    normal = layer_normalized(make, total, *factors, [2], call.attribute("epsilon"))
    if mask is None:
        counts = make.full([make.length(words, 0)], 0, np.int32)
    else:
        counts = make.sum(make.cast(make.equal(mask, 1), np.int32), [1])
    return [normal, counts, total]


@microsoft("QEmbedLayerNormalization")
def quantized_embed_layer_normalization(
    call: NodeCall,
    words: ITensor,
    segments: Maybe,
    word_table: ITensor,
    position_table: ITensor,
    segment_table: Maybe,
    scale: ITensor,
    offset: ITensor,
    mask: Maybe,
    *numbers: Maybe,
) -> list[ITensor]:
    """``EmbedLayerNormalization`` with quantized tables, scale and offset."""
    make = call.make
    pairs = list(zip(numbers[:5], numbers[5:], strict=True))
    if segments is None or segment_table is None:
        segments = segment_table = None
        del pairs[2]
    tensors = [*_rows(call, (word_table, position_table, segment_table), words, segments), scale, offset]
    why = "a scale of the tables is left out"
    wide = [floats_of(make, x, present(own, why), zero) for x, (own, zero) in zip(tensors, pairs, strict=True)]
    return _normalized(call, words, wide[:-2], (wide[-2], wide[-1]), mask)[:2]
