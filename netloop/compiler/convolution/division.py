"""The parts in which a kernel computes the output of a convolution.

A tile is some positions of a line times some vectors of maps, a panel: its sums are in registers while the numbers of
the windows, and the weights of the panel, are read from front to back.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from netloop.compiler.convolution.convolution import Convolution
from netloop.compiler.machine_code.processor import FLOAT32, Processor

MOST_VECTORS = 4
"""The most vectors of a panel. Three or four of them, and as many positions as the registers hold, take the same time
within 3 %, and one vector up to 1.2 times as long, as each number of the input is read for one multiplication."""
MOST_POSITIONS = 12
"""The most positions of a tile: their addresses are constants from one register, and more gain nothing."""
POSITIONS_OF_DEPTHWISE = 8
"""The positions of a tile of a depthwise convolution, whose additions wait for 4 cycles on one of 2 units."""
CACHED = 1 << 20
"""The bytes of weights that stay in a second-level cache. Of more, a thread takes all positions of one panel."""
STRIPE = 192 << 10
"""The bytes of the input of a stripe, which stay in the cache next to weights while all panels read them."""
LEAST_PARTS = 4
"""The parts that threads share evenly enough."""


class Panels(NamedTuple):
    """The panels of weights, which depend on no length.

    Attributes:
        groups: the number of groups that have panels; a depthwise convolution is one group of vectors.
        vectors: the number of vectors of each panel of a group, all as many as the first except the last.
    """

    groups: int
    vectors: tuple[int, ...]

    @property
    def number(self) -> int:
        """The number of panels of all groups."""
        return self.groups * len(self.vectors)


class Division(NamedTuple):
    """The parts of an output.

    Attributes:
        panels: the panels of weights.
        positions: the positions of a tile.
        lines: the number of lines, each a row of an image.
        stripes: the number of stripes of a line, each of neighbouring tiles.
        is_by_panel: whether a thread computes one panel of all lines at a time, and not all panels of one stripe.
    """

    panels: Panels
    positions: int
    lines: int
    stripes: int
    is_by_panel: bool

    @property
    def parts(self) -> int:
        """The number of parts that threads share."""
        return self.panels.number if self.is_by_panel else self.lines * self.stripes


def panels_of(convolution: Convolution, processor: Processor) -> Panels:
    """The panels of the weights of a convolution."""
    groups = 1 if convolution.is_depthwise else convolution.groups
    vectors = -(-convolution.maps // groups // processor.lanes)
    # all as wide, except the last: 3 and 2 instead of 4 and 1
    width = 1 if convolution.is_depthwise else -(-vectors // -(-vectors // MOST_VECTORS))
    return Panels(groups, tuple(min(width, vectors - first) for first in range(0, vectors, width)))


def packed_size(convolution: Convolution, processor: Processor) -> int:
    """The number of weights in the order in which a kernel reads them, with those that fill the last vectors."""
    groups, vectors = panels_of(convolution, processor)
    return groups * convolution.depth * sum(vectors) * processor.lanes


def divided(convolution: Convolution, processor: Processor) -> Division:
    """The division of a convolution of known lengths."""
    own, panels = convolution, panels_of(convolution, processor)
    most = POSITIONS_OF_DEPTHWISE if own.is_depthwise else min(processor.registers // panels.vectors[0], MOST_POSITIONS)
    longest = len(own.columns.whole) if own.is_depthwise else max(len(run.positions) for run in own.columns.runs)
    positions, lines, weights = _even(longest, most), own.batch * own.rows.count, packed_size(own, processor)
    is_by_panel = weights * FLOAT32.itemsize > CACHED or (weights > own.input_size and panels.number >= LEAST_PARTS)
    wanted = max(LEAST_PARTS, own.input_size * FLOAT32.itemsize / STRIPE)
    stripes = 1 if is_by_panel else max(1, min(math.ceil(wanted / lines), longest // positions))
    return Division(panels, positions, lines, stripes, is_by_panel)


def _even(count: int, most: int) -> int:
    """The positions of tiles such that these overlap little: of 14 positions 7 twice instead of 12 twice."""
    sizes = range(1, max(1, min(count, most)) + 1)
    # two more than there are, for the weights that each tile reads
    return min(sizes, key=lambda size: (-(-count // size) * (size + 2), -size))
