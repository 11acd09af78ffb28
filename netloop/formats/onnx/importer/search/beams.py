"""Beam search: several texts for each prompt; those with the best scores are kept."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from netloop.formats.onnx.importer.call import NodeCall
from netloop.formats.onnx.importer.search.loops import Selection
from netloop.formats.onnx.importer.search.penalties import Penalties
from netloop.formats.onnx.importer.search.texts import Texts
from netloop.model.formulas import Length
from netloop.model.graph.tensor import ITensor
from netloop.values.enums import TopKOperation

APART = -1e9
"""The score of all beams of a prompt but the first, which are equal to it at the start."""


@dataclass(frozen=True)
class Finished:
    """The best finished texts of each prompt, best first.

    Attributes:
        scores: their scores, float32 [prompts, beams]; minus infinity where there is none.
        tokens: their tokens, int32 [prompts, beams, most].
        count: their numbers, int64 [prompts, 1].
    """

    scores: ITensor
    tokens: ITensor
    count: ITensor


@dataclass(frozen=True)
class BeamSearch:
    """A beam search with the rules of onnxruntime.

    Attributes:
        call: the node.
        beams: the number of beams.
        penalties: the changes of scores.
        length_penalty: a score is divided by the length to this power; float32, 0-D.
        prompts: the number of prompts; int64, 0-D.
        keeps_scores: whether the state ends with the scores of all tokens in all iterations.
        iterations: the number of these iterations; int64, 0-D.
    """

    call: NodeCall
    beams: Length
    penalties: Penalties
    length_penalty: ITensor
    prompts: ITensor
    keeps_scores: bool
    iterations: ITensor

    def select(self, scores: ITensor, texts: Texts, state: Sequence[ITensor] | None) -> Selection:
        """Select the best continuations; ``_initial`` makes the first state."""
        make = self.call.make
        scores = self.penalties(make.log_softmax(scores, 1), texts, state is None)
        sums, done, step, *rest = self._initial(scores, texts) if state is None else state
        finished, all_scores = Finished(*rest[:3]), rest[3:]
        scores = make.add(scores, make.expand_dims(sums, [1]))
        if self.keeps_scores:
            all_scores = [self._with_row(all_scores[0], scores, step)]
        best, tokens, rows = self._best(scores)
        ends = make.equal(tokens, self.call.attribute("eos_token_id"))
        finished = self._with_ended(finished, texts, best, rows, ends, done)
        sums, tokens, rows = self._following(best, tokens, rows, ends, done)
        done = make.logical_or(done, self._is_done(finished, best, texts))
        goes_on = make.less(make.sum(make.cast(done, np.int64), [0, 1]), self.prompts)
        state = [sums, done, make.add(step, 1), finished.scores, finished.tokens, finished.count, *all_scores]
        return Selection(tokens, rows, state, goes_on)

    def _best(self, scores: ITensor) -> tuple[ITensor, ITensor, ITensor]:
        """The sums of the best candidates of each prompt, their last tokens and the rows that they continue."""
        make = self.call.make
        words = make.length(scores, 1)
        scores = make.reshape(scores, [-1, make.product([words, self.beams])])
        best, places = make.best(TopKOperation.MAX, scores, self._candidates, 1)
        count = make.tensor(words)
        return best, make.modulo(places, count), make.add(make.floor_div(places, count), self._first_rows)

    def results(self, texts: Texts, state: Sequence[ITensor]) -> tuple[Finished, ITensor | None]:
        """The finished texts at the end, at which open ones are finished too, and the scores of all iterations."""
        make = self.call.make
        sums, done, _, *rest = state
        rows = make.add(make.arange(self.beams), self._first_rows)
        ends = make.equal(rows, rows)
        best = make.reshape(sums, [-1, self.beams])
        finished = self._with_ended(Finished(*rest[:3]), texts, best, rows, ends, done)
        return finished, rest[3] if self.keeps_scores else None

    def _initial(self, scores: ITensor, texts: Texts) -> list[ITensor]:
        """The sum of scores of each beam; whether each prompt is done, the iterations so far, and no finished texts."""
        make = self.call.make
        apart = make.where(make.equal(make.arange(self.beams), 0), np.float32(0), np.float32(APART))
        shape = make.list_tensor([self.prompts, self.beams])
        sums = make.reshape(make.broadcast_to(apart, shape), [-1])
        none = [make.full([self.prompts, 1], 0, dtype) for dtype in (np.bool_, np.int64)]
        worst = make.full([self.prompts, self.beams], -np.inf, np.float32)
        blank = make.full([self.prompts, self.beams, texts.most], self.call.attribute("pad_token_id"), np.int32)
        state = [sums, none[0], make.constant(0), worst, blank, none[1]]
        if self.keeps_scores:
            state.append(make.full([self.iterations, make.length(scores, 0), make.length(scores, 1)], 0, np.float32))
        return state

    def _with_row(self, rows: ITensor, row: ITensor, number: ITensor) -> ITensor:
        make = self.call.make
        is_it = make.reshape(make.equal(make.arange(self.iterations), number), [-1, 1, 1])
        return make.where(is_it, make.expand_dims(row, [0]), rows)

    @property
    def _candidates(self) -> Length:
        """The number of candidates of each prompt: half of them may end."""
        return self.call.make.times(self.beams, 2)

    @property
    def _first_rows(self) -> ITensor:
        """The row of the first beam of each prompt, int64 [prompts, 1]."""
        make = self.call.make
        return make.expand_dims(make.mul(make.arange(self.prompts), self.beams), [1])

    def _worth(self, sums: ITensor, texts: Texts) -> ITensor:
        """The scores of finished texts, by the sums of those of their tokens."""
        make = self.call.make
        return make.div(sums, make.power(make.cast(texts.length, np.float32), self.length_penalty))

    def _with_ended(
        self, finished: Finished, texts: Texts, best: ITensor, rows: ITensor, ends: ITensor, done: ITensor
    ) -> Finished:
        """The finished texts, with those among the ``beams`` best that end, if the prompt is not done."""
        make, count = self.call.make, self.beams
        best, rows, ends = (make.slice(tensor, [0], [count], axes=[1]) for tensor in (best, rows, ends))
        ends = make.logical_and(ends, make.logical_not(done))
        scores = make.where(ends, self._worth(best, texts), -np.inf)
        scores, order = make.best(TopKOperation.MAX, make.concat([finished.scores, scores], 1), count, 1)
        own = make.mul(make.expand_dims(make.arange(self.prompts), [1]), self._candidates)
        both = make.concat([finished.tokens, make.gather(texts.tokens, rows)], 1)
        both = make.reshape(both, [-1, texts.most])
        tokens = make.gather(both, make.add(order, own))
        more = make.sum(make.cast(ends, np.int64), [1], keep=True)
        return Finished(scores, tokens, make.minimum(make.add(finished.count, more), count))

    def _following(
        self, best: ITensor, tokens: ITensor, rows: ITensor, ends: ITensor, done: ITensor
    ) -> tuple[ITensor, ITensor, ITensor]:
        """The score, the last token and the row of each text of the next step: the best that do not end."""
        make, count = self.call.make, self.beams
        ranks = make.arange(self._candidates)
        later = make.add(ranks, self._candidates)
        _, order = make.best(TopKOperation.MIN, make.where(ends, later, ranks), count, 1)
        pad = self.call.attribute("pad_token_id")
        tensors = (make.gather_elements(tensor, order, 1) for tensor in (best, tokens, rows))
        # the beams of a prompt that is done all continue row 0, which the scores of further iterations show
        values = [make.where(done, nothing, tensor) for tensor, nothing in zip(tensors, (0.0, pad, 0), strict=True)]
        sums, tokens, rows = (make.reshape(tensor, [-1]) for tensor in values)
        return sums, make.cast(tokens, np.int32), rows

    def _is_done(self, finished: Finished, best: ITensor, texts: Texts) -> ITensor:
        """Whether no open text can be better than the finished ones, as onnxruntime decides it.

        It compares with the best candidate of a window that starts at ``beams`` times the number of the prompt, and so
        for all prompts but the first is not that of their own candidates.
        """
        make, count = self.call.make, self.beams
        is_full = make.equal(finished.count, count)
        if self.call.attribute("early_stopping") == 1:
            return is_full
        window = make.add(self._first_rows, make.arange(self._candidates))
        highest, _ = make.best(TopKOperation.MAX, make.gather(make.reshape(best, [-1]), window), 1, 1)
        worst = make.slice(finished.scores, [make.sub(make.tensor(count), 1)], [1], axes=[1])
        return make.logical_and(is_full, make.logical_not(make.less(worst, self._worth(highest, texts))))
