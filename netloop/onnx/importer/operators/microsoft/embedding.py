"""Embedding of onnxruntime (com.microsoft)."""

from functools import reduce

import numpy as np

from netloop.graph.tensor import ITensor
from netloop.onnx.importer.call import Call
from netloop.onnx.importer.operator_table import microsoft
from netloop.onnx.importer.operators.normalization import layer_normalized, wide_of


@microsoft("EmbedLayerNormalization")
def embed_layer_normalization(
    call: Call,
    words: ITensor,
    segments: ITensor | None,
    word_table: ITensor,
    position_table: ITensor,
    segment_table: ITensor | None,
    scale: ITensor,
    offset: ITensor,
    mask: ITensor | None = None,
    positions: ITensor | None = None,
) -> list[ITensor]:
    """Layer normalization of the sum of the embeddings of words, positions and segments.

    Also the number of ones in each row of the mask, and the sum.
    """
    make = call.make
    places = make.arange(make.length(words, 1)) if positions is None else positions
    terms = [make.gather(word_table, words), make.gather(position_table, places)]
    if segments is not None and segment_table is not None:
        terms.append(make.gather(segment_table, segments))
    total = reduce(make.add, (wide_of(make, each) for each in terms))
    normal = layer_normalized(make, total, wide_of(make, scale), wide_of(make, offset), [2], call.attribute("epsilon"))
    if mask is None:
        counts = make.broadcast_to(make.constant(np.zeros(1, np.int32)), make.list_tensor([make.length(words, 0)]))
    else:
        counts = make.sum(make.cast(make.equal(mask, 1), np.int32), [1])
    return [make.cast(normal, word_table.type.dtype), counts, make.cast(total, word_table.type.dtype)]
