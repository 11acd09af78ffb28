"""N-grams."""

from collections.abc import Iterator
from functools import reduce
from itertools import pairwise

import numpy as np

from netloop.formats.onnx.importer.operators import NodeCall, operator
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import quoted, require
from netloop.values.string_arrays import string_array
from netloop.values.types import Array

MODES = ("TF", "IDF", "TFIDF")

MOST_COLUMNS = 1 << 24
"""The most columns of the output."""

MOST_SUMMED = 1 << 26
"""The most elements of the matrix that sums n-grams of the same column."""

MOST_SKIPS = 1 << 10
"""The largest number of skipped elements: layers are added for each."""


@operator("TfIdfVectorizer", since=9)
def count_grams(call: NodeCall, x: ITensor) -> ITensor:
    """The number of occurrences of each n-gram of a pool, its elements adjacent or equally spaced.

    IDF counts an n-gram once at most; IDF and TFIDF multiply by its weight.
    """
    make, places, mode = call.make, call.attribute("ngram_indexes"), call.attribute("mode")
    require(x.type.rank in (1, 2), f"the input is {x}, but must be a sequence or a batch of sequences")
    skips = call.attribute("max_skip_count")
    require(skips >= 0, f"max_skip_count is {skips}, but must not be negative")
    require(mode in MODES, f"the mode is {quoted(mode)}, but must be one of {', '.join(MODES)}")
    require(min(places, default=0) >= 0, f"ngram_indexes are {places}, but must not be negative")
    counts = make.cast(_count_strings(call, x) if x.type.is_string else _count_numbers(call, x, skips), np.float32)
    count = counts.type.shape[-1]
    weights = call.attribute("weights", [1.0] * count) if mode != "TF" else [1.0] * count
    require(len(places) == len(weights) == count, f"there must be an index and a weight for each of {count} n-grams")
    counts = make.minimum(counts, 1.0) if mode == "IDF" else counts
    weighted = make.mul(counts, np.array(weights, np.float32)) if mode != "TF" else counts
    return _in_columns(call, weighted, np.array(places, np.int64))


def _in_columns(call: NodeCall, x: ITensor, places: Array) -> ITensor:
    """The elements of the last axis, each in the column with its place; those of one place are summed."""
    make, count = call.make, len(places)
    width = int(places.max(initial=-1)) + 1
    require(width <= MOST_COLUMNS, f"an index of ngram_indexes is {width - 1}, but must be less than {MOST_COLUMNS}")
    if len(np.unique(places)) < count:
        require(count * width <= MOST_SUMMED, f"{count} n-grams are summed in {width} columns, which are too many")
        matrix = np.zeros((count, width), np.float32)
        matrix[np.arange(count), places] = 1
        return make.matmul(x, make.constant(matrix))
    if np.array_equal(places, np.arange(count)):
        return x
    sources = np.full(width, count, np.int64)
    sources[places] = np.arange(count)
    lengths = [make.length(x, axis) for axis in range(x.type.rank - 1)]
    nothing = make.full([*lengths, 1], 0, np.float32)
    return make.gather(make.concat([x, nothing], x.type.rank - 1), make.constant(sources), x.type.rank - 1)


def _count_strings(call: NodeCall, x: ITensor) -> ITensor:
    """The number of occurrences of each n-gram of strings."""
    pool = string_array(call.attribute("pool_strings", []))
    layer = call.make.network.add_string_ngrams(x, pool, call.attribute("ngram_counts"))
    layer.least, layer.most = call.attribute("min_gram_length"), call.attribute("max_gram_length")
    layer.most_skips = call.attribute("max_skip_count")
    return layer.outputs[0]


def _count_numbers(call: NodeCall, x: ITensor, skips: int) -> ITensor:
    """The number of occurrences of each n-gram of numbers."""
    make = call.make
    require(call.attribute("pool_strings") is None, f"the n-grams are strings, and the input is {x.type}")
    require(skips <= MOST_SKIPS, f"max_skip_count is {skips}, but must be at most {MOST_SKIPS}")
    least, most = call.attribute("min_gram_length"), call.attribute("max_gram_length")
    lengths = [make.length(x, axis) for axis in range(x.type.rank - 1)]
    tensors: list[ITensor] = []
    for grams in _pools(call):
        if len(grams) and least <= grams.shape[1] <= most:
            tensors.append(_counts(call, make.cast(x, np.int64), grams))
        elif len(grams):
            tensors.append(make.full([*lengths, len(grams)], 0, np.float32))
    if not tensors:
        return make.full([*lengths, 0], 0, np.float32)
    return make.concat(tensors, x.type.rank - 1)


def _pools(call: NodeCall) -> Iterator[Array]:
    """The n-grams of each length, from 1 on; [n-gram, element]."""
    pool = np.array(call.attribute("pool_int64s", []), np.int64)
    starts = [*call.attribute("ngram_counts"), len(pool)]
    fits = starts == sorted(starts) and starts[0] == 0
    require(fits, f"ngram_counts are {starts[:-1]}, but must rise from 0 to the {len(pool)} elements of the pool")
    for length, (start, end) in enumerate(pairwise(starts), 1):
        require((end - start) % length == 0, f"{end - start} elements of the pool do not divide into {length}-grams")
        yield pool[start:end].reshape(-1, length)


def _counts(call: NodeCall, x: ITensor, grams: Array) -> ITensor:
    """The number of occurrences of each n-gram of one length."""
    make, axis, length = call.make, x.type.rank - 1, grams.shape[1]
    counts: list[ITensor] = []
    for step in range(1, 2 + (call.attribute("max_skip_count") if length > 1 else 0)):
        starts = make.maximum(make.sub(make.tensor(make.length(x, axis)), step * (length - 1)), 0)
        index = make.add(make.expand_dims(make.arange(make.scalar(starts)), [1]), np.arange(length) * step)
        windows = make.expand_dims(make.gather(x, index, axis), [axis + 1])
        same = make.cast(make.equal(windows, make.constant(grams)), np.int64)
        hits = make.equal(make.sum(same, [axis + 2]), length)
        counts.append(make.sum(make.cast(hits, np.float32), [axis]))
    return reduce(make.add, counts)
