"""N-grams of onnxruntime (com.microsoft)."""

import numpy as np

from netloop.formats.onnx.importer.operators.microsoft import Maybe, NodeCall, microsoft
from netloop.model.formulas import FormulaBuilder
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.enums import CumulativeOperation, ReduceOperation

MOST_WORDS = 64
"""The most tokens of an n-gram for which layers are added."""


@microsoft("NGramRepeatBlock")
def ngram_repeat_block(call: NodeCall, tokens: ITensor, scores: ITensor) -> ITensor:
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
    updates = make.where(
        repeated, *(make.constant(np.array(number, scores.type.dtype)) for number in (-np.inf, np.inf))
    )
    ends = make.gather(tokens, make.add(starts, before), 1)
    return make.scatter_elements(scores, ends, updates, 1, ReduceOperation.MIN)


@microsoft("BifurcationDetector")
def bifurcation_detector(
    call: NodeCall, source: ITensor, current: ITensor, start: ITensor, predicted: Maybe = None
) -> list[ITensor]:
    """A text with the predicted tokens up to the first that differs from the source, and where the source goes on."""
    make = call.make
    if predicted is not None:
        count = make.sub(make.tensor(make.length(predicted, 0)), 1)
        expected = make.gather(source, make.add(make.arange(count), make.scalar(start)))
        same = make.cast(make.equal(make.take_first(predicted, count), expected), np.int64)
        same = make.sum(make.cumulative(CumulativeOperation.PROD, same, 0), [0])
        current = make.concat([current, make.take_first(predicted, make.add(same, 1))], 0)
    place, goes_on = make.constant(-1), make.constant(True)
    least, most = call.attribute("min_ngram_size"), call.attribute("max_ngram_size")
    require(1 <= least <= most <= MOST_WORDS, f"n-grams have {least} to {most} tokens, but may have 1 to {MOST_WORDS}")
    for size in range(least, most + 1):
        place, goes_on = _next_place(make, source, current, size, place, goes_on)
    return [current, make.reshape(place, make.shape(start))]


def _next_place(
    make: FormulaBuilder, source: ITensor, text: ITensor, size: int, before: ITensor, goes_on: ITensor
) -> tuple[ITensor, ITensor]:
    """Where the source goes on after the last n-gram of a text, -1 if it has several; whether to try longer ones."""
    length, most = (make.tensor(make.length(tensor, 0)) for tensor in (text, source))
    offsets = make.arange(size)
    last = make.gather(text, make.maximum(make.add(make.sub(length, size), offsets), 0))
    starts = make.arange(make.maximum(make.sub(most, size - 1), 0))
    windows = make.gather(source, make.add(make.expand_dims(starts, [1]), offsets))
    equal = make.equal(make.sum(make.cast(make.equal(windows, last), np.int64), [1]), size)
    count = make.sum(make.cast(equal, np.int64), [0])
    first = make.reduce(ReduceOperation.MIN, make.concat([make.where(equal, starts, most), make.flat(most)], 0), [0])
    after = make.add(first, size)
    goes_on = make.logical_and(goes_on, make.logical_and(make.greater_equal(length, size), make.greater(count, 0)))
    is_last = make.greater_equal(after, most)
    several = make.logical_and(make.greater(count, 1), make.logical_not(is_last))
    place = make.where(goes_on, make.where(several, -1, after), before)
    return place, make.logical_and(goes_on, make.logical_not(is_last))
