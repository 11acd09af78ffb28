"""Logits processors: repetition penalty, n-gram blocking, vocabulary masks."""

from dataclasses import dataclass

import numpy as np

from netloop.formats.onnx.importer.call import NodeCall
from netloop.formats.onnx.importer.search.texts import Texts, repeated
from netloop.model.formulas import Length
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.enums import ReduceOperation

LONGEST = 4096
"""The most tokens of a text in onnxruntime."""
LOWEST = float(np.finfo(np.float32).min)
"""The score of a token that must not follow."""


@dataclass(frozen=True)
class Penalties:
    """The penalties of a search, in the order in which onnxruntime applies them.

    Attributes:
        call: the node, whose attributes are read too.
        beams: the number of texts for each prompt.
        least: the length before which no text ends.
        repetition: the number that divides scores of tokens of the text, or multiplies negative ones.
        words: 0 for each token that must not follow.
        first_words: the same for the first token after each prompt, [prompts, tokens].
        present: 1 for tokens that the attribute ``presence_penalty`` is for, [texts, tokens].
    """

    call: NodeCall
    beams: Length = 1
    least: ITensor | None = None
    repetition: ITensor | None = None
    words: ITensor | None = None
    first_words: ITensor | None = None
    present: ITensor | None = None

    def __call__(self, scores: ITensor, texts: Texts, is_first: bool) -> ITensor:
        """The changed scores of the next tokens; [texts, tokens]."""
        make, size = self.call.make, self.call.attribute("no_repeat_ngram_size")
        if self.repetition is not None:
            scores = self._unrepeated(scores, texts, make.scalar(self.repetition))
        if size > 0:
            scores = self._without_repeated_ngrams(scores, texts, size)
        if self.words is not None:
            scores = make.where(make.equal(self.words, 0), LOWEST, scores)
        if self.first_words is not None and is_first:
            words = repeated(make, self.first_words, self.beams)
            scores = make.where(make.equal(words, 0), LOWEST, scores)
        if self.least is not None:
            scores = self._unended(scores, texts, make.scalar(self.least))
        scores = make.div(scores, self.call.attribute("temperature", 1.0))
        if self.present is not None:
            amount = self.call.attribute("presence_penalty", 0.0)
            scores = make.sub(scores, make.mul(make.cast(self.present, np.float32), amount))
        return scores

    def _unrepeated(self, scores: ITensor, texts: Texts, penalty: ITensor) -> ITensor:
        make = self.call.make
        first = make.slice(texts.tokens, [0], [1], axes=[1])
        tokens = make.where(make.less(texts.places, texts.length), texts.tokens, first)
        none, ones = make.full(make.shape(scores), 0, np.int32), make.full(make.shape(tokens), 1, np.int32)
        there = make.scatter_elements(none, tokens, ones, 1, ReduceOperation.MAX)
        worse = make.where(make.less(scores, 0.0), make.mul(scores, penalty), make.div(scores, penalty))
        return make.where(make.equal(there, 1), worse, scores)

    def _without_repeated_ngrams(self, scores: ITensor, texts: Texts, size: int) -> ITensor:
        """The scores with the lowest for each token that would complete an n-gram that is there already."""
        make, before = self.call.make, size - 1
        require(size <= LONGEST, f"no_repeat_ngram_size is {size}, but may be {LONGEST}")
        count = make.maximum(make.sub(make.tensor(texts.most), before), 0)
        starts, offsets = make.arange(count), make.arange(before)
        is_there = make.less_equal(make.add(starts, size), texts.length)
        if before:
            windows = make.gather(texts.tokens, make.add(make.expand_dims(starts, [1]), offsets), 1)
            last = make.maximum(make.add(make.sub(texts.length, before), offsets), 0)
            same = make.equal(windows, make.expand_dims(make.gather(texts.tokens, last, 1), [1]))
            equal = make.sum(make.cast(same, np.int32), [2])
            is_there = make.logical_and(make.equal(equal, before), is_there)
        ends = make.gather(texts.tokens, make.add(starts, before), 1)
        is_there = make.broadcast_to(is_there if before else make.expand_dims(is_there, [0]), make.shape(ends))
        lowest, highest = (make.constant(number, np.float32) for number in (LOWEST, np.inf))
        updates = make.where(is_there, lowest, highest)
        return make.scatter_elements(scores, make.where(is_there, ends, 0), updates, 1, ReduceOperation.MIN)

    def _unended(self, scores: ITensor, texts: Texts, least: ITensor) -> ITensor:
        make = self.call.make
        is_short = make.less(texts.length, make.cast(least, np.int64))
        is_end = make.equal(make.arange(make.length(scores, 1)), self.call.attribute("eos_token_id"))
        return make.where(make.logical_and(is_short, is_end), LOWEST, scores)
