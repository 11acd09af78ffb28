"""N-grams of onnxruntime (com.microsoft)."""

import numpy as np

from netloop.diagnostics import require
from netloop.enums import ReduceOperation
from netloop.graph.tensor import ITensor
from netloop.onnx.importer.call import Call
from netloop.onnx.importer.operator_table import microsoft


@microsoft("NGramRepeatBlock")
def ngram_repeat_block(call: Call, tokens: ITensor, scores: ITensor) -> ITensor:
    """Scores with minus infinity for each token that would complete an n-gram that is there already."""
    make, size = call.make, call.attribute("ngram_size")
    require(size > 0, f"ngram_size is {size}, but must be positive")
    before, length = size - 1, make.length(tokens, 1)
    if isinstance(length, int) and length <= before:
        return scores
    count = make.maximum(make.sub(make.tensor(length), before), 0)
    starts = make.arange(count)
    windows = make.gather(tokens, make.add(make.expand_dims(starts, [1]), make.arange(before)), 1)
    last = make.gather(tokens, make.add(count, make.arange(before)), 1)
    same = make.cast(make.equal(windows, make.expand_dims(last, [1])), np.int32)
    repeated = make.equal(make.sum(same, [2]), before)
    updates = make.where(repeated, *(make.constant(np.array(each, scores.type.dtype)) for each in (-np.inf, np.inf)))
    ends = make.gather(tokens, make.add(starts, before), 1)
    return make.scatter_elements(scores, ends, updates, 1, ReduceOperation.MIN)
