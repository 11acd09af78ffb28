"""Greedy search and sampling: one text for each prompt."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from netloop.formats.onnx.importer.call import NodeCall
from netloop.formats.onnx.importer.search.loops import Selection
from netloop.formats.onnx.importer.search.penalties import Penalties
from netloop.formats.onnx.importer.search.texts import Texts
from netloop.model.graph.tensor import ITensor
from netloop.values.enums import TopKOperation

GOLDEN = 0.6180339887498949
"""The golden ratio's fraction: its multiples are spread evenly modulo 1."""


@dataclass(frozen=True)
class SingleSearch(ABC):
    """A search with one text for each prompt, which ends with the first token that ends texts.

    Attributes:
        call: the node.
        penalties: the changes of scores.
    """

    call: NodeCall
    penalties: Penalties

    @abstractmethod
    def choose(self, scores: ITensor) -> ITensor:
        """The next tokens, of any integer type [texts], by the scores [texts, tokens]."""

    def select(self, scores: ITensor, texts: Texts, state: Sequence[ITensor] | None) -> Selection:
        """Select the next tokens; the state says which texts have ended."""
        make = self.call.make
        tokens = make.cast(self.choose(self.penalties(scores, texts, state is None)), np.int32)
        ended = make.equal(tokens, self.call.attribute("eos_token_id"))
        ended = ended if state is None else make.logical_or(state[0], ended)
        tokens = make.where(ended, self.call.attribute("pad_token_id"), tokens)
        count = make.sum(make.cast(ended, np.int64), [0])
        return Selection(tokens, None, [ended], make.less(count, make.tensor(make.length(tokens, 0))))


class GreedySearch(SingleSearch):
    """Selects the tokens of the highest score."""

    def choose(self, scores: ITensor) -> ITensor:
        make = self.call.make
        return make.squeeze(make.best(TopKOperation.MAX, scores, 1, 1)[1], [1])


@dataclass(frozen=True)
class Sampling(SingleSearch):
    """Draws tokens among those that have most of the probability (top-p sampling).

    Attributes:
        seed: an integer on which the numbers drawn depend; None for 0.
    """

    seed: ITensor | None = None

    def choose(self, scores: ITensor) -> ITensor:
        make = self.call.make
        shares = make.softmax(self.filtered(scores), 1)
        drawn = make.uniform([make.length(scores, 0), 1], np.dtype(np.float32))
        if self.seed is not None:
            turn = make.mul(make.cast(make.scalar(self.seed), np.float64), GOLDEN)
            drawn = make.cast(make.modulo(make.add(make.cast(drawn, np.float64), turn), 1.0), np.float32)
        passed = make.cast(make.less_equal(self._running(shares), drawn), np.int64)
        last = make.sub(make.tensor(make.length(scores, 1)), 1)
        return make.minimum(make.sum(passed, [1]), last)  # a rounded sum may be below the number drawn

    def _running(self, shares: ITensor) -> ITensor:
        return self.call.make.cumulative_sum(shares, 1)

    def filtered(self, scores: ITensor) -> ITensor:
        """The scores, with ``filter_value`` for the tokens that have the rest of the probability."""
        make, top, low = self.call.make, self.call.attribute("top_p"), self.call.attribute("filter_value")
        words = make.length(scores, 1)
        ordered, places = make.best(TopKOperation.MAX, scores, words, 1)
        ranks = make.arange(words)
        shares = make.softmax(ordered, 1)
        if self.call.attribute("custom"):
            rest = make.greater(make.sub(self._running(shares), shares), top)
            rest = make.logical_and(rest, make.greater(ranks, 0))
        else:
            upwards = self._running(make.backwards(shares, [1]))
            rest = make.less_equal(make.backwards(upwards, [1]), 1 - top)
            kept = make.less(ranks, self.call.attribute("min_tokens_to_keep"))
            rest = make.logical_and(rest, make.logical_not(kept))
        return make.scatter_elements(scores, places, make.where(rest, low, ordered), 1)
