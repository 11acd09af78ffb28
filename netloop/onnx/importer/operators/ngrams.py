"""N-grams."""

from collections.abc import Iterator
from functools import reduce
from itertools import pairwise

import numpy as np

from netloop.diagnostics import quoted, require
from netloop.graph.tensor import ITensor
from netloop.onnx.importer.call import Call
from netloop.onnx.importer.operator_table import operator
from netloop.types import Array

MODES = ("TF", "IDF", "TFIDF")

MOST_SKIPS = 1 << 10
"""The largest number of skipped elements, for each of which there are layers."""


@operator("TfIdfVectorizer", since=9)
def count_grams(call: Call, x: ITensor) -> ITensor:
    """The number of occurrences of each n-gram of a pool, its elements adjacent or equally spaced.

    IDF counts an n-gram once at most; IDF and TFIDF multiply by its weight.
    """
    make, places, mode = call.make, call.attribute("ngram_indexes"), call.attribute("mode")
    require(call.attribute("pool_strings") is None, "the n-grams are strings", "networks have no tensors of strings")
    require(x.type.rank in (1, 2), f"the input is {x.type}, but must be a sequence or a batch of sequences")
    skips = call.attribute("max_skip_count")
    require(skips >= 0, f"max_skip_count is {skips}, but must not be negative")
    require(skips <= MOST_SKIPS, f"max_skip_count is {skips}, but must be at most {MOST_SKIPS}")
    require(mode in MODES, f"the mode is {quoted(mode)}, but must be one of {', '.join(MODES)}")
    pools = [grams for grams in _pools(call) if len(grams)]
    count = sum(map(len, pools))
    weights = call.attribute("weights", [1.0] * count) if mode != "TF" else [1.0] * count
    require(len(places) == len(weights) == count, f"there must be an index and a weight for each of {count} n-grams")
    require(min(places, default=0) >= 0, f"ngram_indexes are {places}, but must not be negative")
    taken = [
        call.attribute("min_gram_length") <= grams.shape[1] <= call.attribute("max_gram_length") for grams in pools
    ]
    found = [
        _counts(call, make.cast(x, np.int64), grams, mode) for grams, used in zip(pools, taken, strict=True) if used
    ]
    lengths = [make.length(x, axis) for axis in range(x.type.rank - 1)]
    matrix = np.zeros((count, max(places, default=-1) + 1), np.float32)
    matrix[np.arange(count), places] = weights
    if not found:
        return make.broadcast_to(make.constant(np.zeros(1, np.float32)), make.list_tensor([*lengths, matrix.shape[1]]))
    rows = np.repeat(taken, [len(grams) for grams in pools])
    return make.matmul(make.concat(found, x.type.rank - 1), make.constant(matrix[rows]))


def _pools(call: Call) -> Iterator[Array]:
    """The n-grams of each length, from 1 on; [n-gram, element]."""
    pool = np.array(call.attribute("pool_int64s", []), np.int64)
    starts = [*call.attribute("ngram_counts"), len(pool)]
    fits = starts == sorted(starts) and starts[0] == 0
    require(fits, f"ngram_counts are {starts[:-1]}, but must rise from 0 to the {len(pool)} elements of the pool")
    for length, (start, end) in enumerate(pairwise(starts), 1):
        require((end - start) % length == 0, f"{end - start} elements of the pool do not divide into {length}-grams")
        yield pool[start:end].reshape(-1, length)


def _counts(call: Call, x: ITensor, grams: Array, mode: str) -> ITensor:
    """The number of occurrences of each n-gram of one length; with IDF whether it occurs."""
    make, axis, length = call.make, x.type.rank - 1, grams.shape[1]
    counts: list[ITensor] = []
    for step in range(1, 2 + (call.attribute("max_skip_count") if length > 1 else 0)):
        starts = make.maximum(make.sub(make.tensor(make.length(x, axis)), step * (length - 1)), 0)
        index = make.add(make.expand_dims(make.arange(make.scalar(starts)), [1]), np.arange(length) * step)
        windows = make.expand_dims(make.gather(x, index, axis), [axis + 1])
        same = make.cast(make.equal(windows, make.constant(grams)), np.int64)
        hits = make.equal(make.sum(same, [axis + 2]), length)
        counts.append(make.sum(make.cast(hits, np.float32), [axis]))
    total = reduce(make.add, counts)
    return make.minimum(total, 1.0) if mode == "IDF" else total
