"""The tensors that a loop reads slice by slice, and its outputs of concatenated slices."""

from dataclasses import dataclass

from netloop.formats.openvino.importer.model import PortEntry
from netloop.formats.shared import StackedOutput
from netloop.model.formulas import FormulaBuilder, Length
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.loop import ILoop
from netloop.values.diagnostics import require
from netloop.values.types import UNKNOWN, normal_axis


@dataclass(frozen=True)
class Slices:
    """A tensor that a loop reads slice by slice.

    Attributes:
        parts: the tensor, with an axis of the slices before the axis of the elements of a slice.
        axis: the axis of the slices.
        count: the number of slices.
    """

    parts: ITensor
    axis: int
    count: Length

    def read(self, loop: ILoop) -> ITensor:
        """The slice of an iteration."""
        return loop.add_iterator(self.parts, self.axis).outputs[0]


def slices_of(make: FormulaBuilder, x: ITensor, entry: PortEntry) -> Slices:
    """Cut a tensor into the slices that an entry of a port map describes.

    They range from element ``start`` to element ``end``, inclusive; negative ones count from the end. With a negative
    stride the last slice comes first.
    """
    assert entry.axis is not None
    axis = normal_axis(entry.axis, x.type.rank)
    length = make.length(x, axis)
    low, high = (_place(make, number, length) for number in (entry.start, entry.end)[:: 1 if entry.stride > 0 else -1])
    step, size = abs(entry.stride), entry.part_size
    require(step > 0 and size > 0, f"the slices have the size {size} and the stride {entry.stride}")
    if isinstance(low, int) and isinstance(high, int) and isinstance(length, int):
        inside = 0 <= low <= high + 1 <= length
        require(inside, f"axis {axis} has {length} elements, and slices range from {entry.start} to {entry.end}")
        others = high + 1 - low - size
        fits = others == -size or (others >= 0 and others % step == 0)
        require(fits, f"slices of {size} elements do not fill {others + size} elements")
    extent = _extent(make, low, high)
    if low != 0 or extent != length:
        x = make.slice(x, [low], [extent], axes=[axis])
    parts = _split(make, x, axis, size) if size == step else _windows(make, x, axis, entry, extent)
    if entry.stride < 0:
        count = make.length(parts, axis)
        last = count - 1 if isinstance(count, int) else make.sub(count, 1)
        parts = make.slice(parts, [last], [count], [-1], axes=[axis])
    return Slices(parts, axis, make.length(parts, axis))


def _place(make: FormulaBuilder, place: int, length: Length) -> Length:
    """An index counted from the front."""
    if place >= 0:
        return place
    return place + length if isinstance(length, int) else make.add(length, place)


def _extent(make: FormulaBuilder, low: Length, high: Length) -> Length:
    if isinstance(low, int) and isinstance(high, int):
        return high + 1 - low
    extent = make.add(make.sub(make.tensor(high), make.tensor(low)), 1)
    numbers = make.ints(extent)
    return extent if numbers is None else numbers[0]


def _split(make: FormulaBuilder, x: ITensor, axis: int, size: int) -> ITensor:
    """Cut adjacent slices."""
    if size == 1:
        return make.expand_dims(x, [axis + 1])
    dims: list[Length] = [make.length(x, index) for index in range(x.type.rank)]
    return make.reshape(x, [*dims[:axis], UNKNOWN, size, *dims[axis + 1 :]])


def _windows(make: FormulaBuilder, x: ITensor, axis: int, entry: PortEntry, extent: Length) -> ITensor:
    """Cut slices that overlap or have gaps between them."""
    step, size = abs(entry.stride), entry.part_size
    count = make.add(make.div(make.sub(make.tensor(extent), size), step), 1)
    numbers = make.ints(count)
    first = make.expand_dims(make.arange(count if numbers is None else numbers[0], step=step), [1])
    return make.gather(x, make.add(first, make.arange(size)), axis)


def joined(value: ITensor, entry: PortEntry) -> StackedOutput:
    """The output that concatenates a value of each iteration along an axis."""
    assert entry.axis is not None
    whole = (0, -1) if entry.stride > 0 else (-1, 0)
    require(
        (entry.start, entry.end) == whole,
        f"an output ranges from {entry.start} to {entry.end} with the stride {entry.stride}",
        "outputs are complete, from 0 to -1 or reversed from -1 to 0",
    )
    size = value.type.shape[normal_axis(entry.axis, value.type.rank)] if value.type.rank else 1
    parts = entry.part_size, abs(entry.stride)
    require(UNKNOWN in (size, *parts) or parts == (size, size) or parts == (1, 1), f"slices of {parts} are not {size}")
    return StackedOutput(value, entry.axis, entry.stride < 0, joined=True)
