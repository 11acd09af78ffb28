"""Space-to-depth and depth-to-space rearrangements."""

from collections.abc import Sequence

from netloop.model.formulas.arithmetic import Arithmetic
from netloop.model.formulas.rearrange import Length
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require


class Blocks(Arithmetic):
    """Formulas over images, whose axes are batch, channels and one or more spatial axes."""

    def times(self, length: Length, factor: int) -> Length:
        """The product of a length and a number."""
        return length * factor if isinstance(length, int) else self.mul(length, factor)

    def part_of(self, length: Length, parts: int) -> Length:
        """A length divided by a number of parts that divides it."""
        require(parts > 0, f"there are {parts} parts")
        if isinstance(length, ITensor):
            return self.floor_div(length, parts)
        require(length % parts == 0, f"a length of {length} is not a multiple of {parts}")
        return length // parts

    def blocks_of_channels(self, x: ITensor, size: int, blocks_first: bool) -> ITensor:
        """Depth to space: channels become blocks of ``size`` along each spatial axis.

        ``blocks_first`` says that the channels are ordered by the position in the block first, and not last.
        """
        batch, channels, *space = self._image(x)
        count = len(space)
        kept = self.part_of(channels, size**count)
        block = [size] * count
        parts = [batch, *block, kept, *space] if blocks_first else [batch, kept, *block, *space]
        first = 1 if blocks_first else 2
        order = [0, 1 + count if blocks_first else 1]
        for axis in range(count):
            order += [2 + count + axis, first + axis]
        spread = self.transpose(self.reshape(x, parts), order)
        return self.reshape(spread, [batch, kept, *(self.times(choice, size) for choice in space)])

    def channels_of_blocks(self, x: ITensor, size: int, blocks_first: bool) -> ITensor:
        """Space to depth: blocks of ``size`` along each spatial axis become channels."""
        batch, channels, *space = self._image(x)
        count = len(space)
        rows = [self.part_of(choice, size) for choice in space]
        inside, outside = ([start + 2 * axis for axis in range(count)] for start in (3, 2))
        order = [0, *inside, 1, *outside] if blocks_first else [0, 1, *inside, *outside]
        parts = [batch, channels, *(length for row in rows for length in (row, size))]
        blocks = self.transpose(self.reshape(x, parts), order)
        return self.reshape(blocks, [batch, self.times(channels, size**count), *rows])

    def _image(self, x: ITensor) -> Sequence[Length]:
        require(x.type.rank > 2, f"the input is {x.type}, and needs a batch axis, a channel axis and spatial axes")
        return [self.length(x, axis) for axis in range(x.type.rank)]
