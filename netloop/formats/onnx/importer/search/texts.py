"""Texts that a search extends token by token."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from netloop.model.formulas import FormulaBuilder, Length
from netloop.model.graph.tensor import ITensor


@dataclass(frozen=True)
class Texts:
    """Texts of equal length.

    Attributes:
        make: the builder of layers.
        tokens: the tokens, int32 [texts, most], with padding after the first ``length`` of each text.
        length: the number of tokens of each; int64, 0-D.
    """

    make: FormulaBuilder
    tokens: ITensor
    length: ITensor

    @staticmethod
    def starting_with(make: FormulaBuilder, tokens: ITensor, most: ITensor, pad: int) -> Texts:
        """Texts that start with some tokens, with room for ``most``."""
        length = make.tensor(make.length(tokens, 1))
        padding = make.full([make.length(tokens, 0), make.sub(most, length)], pad, np.int32)
        return Texts(make, make.concat([tokens, padding], 1), length)

    @property
    def most(self) -> Length:
        """The number of tokens that there is room for."""
        return self.make.length(self.tokens, 1)

    @property
    def places(self) -> ITensor:
        """The positions of tokens and padding; int64."""
        return self.make.arange(self.most)

    def extended(self, tokens: ITensor, rows: ITensor | None = None) -> Texts:
        """The texts, or those at ``rows``, each with one token more."""
        make = self.make
        before = self.tokens if rows is None else make.gather(self.tokens, rows)
        is_new = make.equal(self.places, self.length)
        return Texts(make, make.where(is_new, make.expand_dims(tokens, [1]), before), make.add(self.length, 1))


def repeated(make: FormulaBuilder, x: ITensor, times: Length, axis: int = 0) -> ITensor:
    """Each slice of an axis several times in a row."""
    if isinstance(times, int) and times == 1:
        return x
    count = make.mul(make.tensor(make.length(x, axis)), times)
    return make.gather(x, make.floor_div(make.arange(count), times), axis)
