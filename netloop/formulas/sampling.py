"""Random samples."""

from __future__ import annotations

import numpy as np

from netloop.enums import CumulativeOperation
from netloop.formulas.rearrange import Length
from netloop.formulas.reduce import Reducing
from netloop.formulas.sources import Filling
from netloop.graph.tensor import ITensor


class Drawing(Reducing, Filling):
    """Formulas that draw random samples."""

    def drawn_classes(self, shares: ITensor, count: Length) -> ITensor:
        """Class indices, int64[batch, count], drawn with the probabilities of float32[batch, classes]."""
        last = self.sub(self.tensor(self.length(shares, 1)), 1)
        drawn = self.uniform([self.length(shares, 0), count, 1], np.dtype(np.float32))
        below = self.expand_dims(self.cumulative(CumulativeOperation.SUM, shares, 1), [1])
        passed = self.sum(self.cast(self.less_equal(below, drawn), np.int64), [2])
        return self.minimum(passed, last)  # a rounded sum of all probabilities may be below the number drawn
