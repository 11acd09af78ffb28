"""Helper of convolution and pooling: how a window slides along the axes of a tensor."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from netloop.model.graph.layer import Operation
from netloop.values.diagnostics import require
from netloop.values.dims import DimsLike
from netloop.values.enums import PaddingMode
from netloop.values.types import LARGEST_INDEX, UNKNOWN, Shape, TensorType

SAME = {PaddingMode.SAME_UPPER, PaddingMode.SAME_LOWER}

LONGEST = LARGEST_INDEX
"""The largest window, stride and padding, and the longest padded axis.

GPUs count the elements of a window in 32 bits. XLA's compiler for CPUs visits each position of some windows, which
takes seconds for this many; where 64 bits overflow, it ends the process.
"""

TOO_LONG = f"windows, strides, padding and padded axes are at most {LONGEST}, which devices can count"


class Window(NamedTuple):
    """A window along one axis.

    Attributes:
        span: the number of elements from its first to its last, dilation included.
        stride: the distance between positions.
        before, after: the padding that the user set.
    """

    span: int
    stride: int
    before: int
    after: int


class WindowPositions(NamedTuple):
    """The positions of a window along one axis: position i starts at element i * stride - before.

    Attributes:
        length: the length of the output.
        before, after: the padding of the input; for windows that are written, the elements trimmed off the output.
    """

    length: int
    before: int
    after: int


def places_read(length: int, window: Window, mode: PaddingMode) -> WindowPositions:
    """The positions at which a window reads an axis of some length; the output length is below 1 if it does not fit."""
    span, stride, before, after = window
    if mode in SAME:
        count = -(-length // stride)
        return WindowPositions(count, *_split((count - 1) * stride + span - length, mode))
    room = length + before + after - span
    strides = -(-room // stride) if mode is PaddingMode.EXPLICIT_ROUND_UP else room // stride
    return WindowPositions(strides + 1, before, after)


def places_written(length: int, window: Window, mode: PaddingMode) -> WindowPositions:
    """The positions at which the windows of ``length`` elements are written, and the output length after trimming."""
    span, stride, before, after = window
    if mode in SAME:
        before, after = _split(span - stride, mode)
    return WindowPositions((length - 1) * stride + span - before - after, before, after)


def _split(padding: int, mode: PaddingMode) -> tuple[int, int]:
    less, more = max(padding, 0) // 2, (max(padding, 0) + 1) // 2
    return (less, more) if mode is PaddingMode.SAME_UPPER else (more, less)


@dataclass(eq=False, repr=False, kw_only=True)
class SlidingWindow(Operation):
    """Base of the layers that slide a window over the axes after batch and channel.

    ===================  ======================================================================================
    EXPLICIT_ROUND_DOWN  padding as given; a last window that does not fit is left out
    EXPLICIT_ROUND_UP    padding as given; the last window may extend past the end
    SAME_UPPER           padding such that ceil(length / stride) windows fit, the odd element after the input
    SAME_LOWER           the same, the odd element before the input
    ===================  ======================================================================================
    """

    LEAST: ClassVar[dict[str, int]]
    """The smallest value, which is also the default, of each attribute with one number per axis; the window first."""

    stride_nd: DimsLike = ()
    dilation_nd: DimsLike = ()
    pre_padding: DimsLike = ()
    post_padding: DimsLike = ()
    padding_mode: PaddingMode = PaddingMode.EXPLICIT_ROUND_DOWN

    def __post_init__(self) -> None:
        for name, least in self.LEAST.items():
            if not getattr(self, name):
                setattr(self, name, (least,) * len(self.window))

    @property
    def padding_nd(self) -> Sequence[int]:
        """The padding before the input; setting it also sets the padding after the input."""
        return self.pre_padding

    @padding_nd.setter
    def padding_nd(self, padding: Sequence[int]) -> None:
        self.pre_padding = self.post_padding = padding

    @property
    def window(self) -> Sequence[int]:
        """The number of elements of the window along each axis."""
        return getattr(self, next(iter(self.LEAST)))

    @property
    def detail(self) -> str:
        """The window, and where they are not 1 the strides (s), dilations (d) and groups (g): ``3x3 s2 g32``."""
        numbers = {"s": self.stride_nd, "d": self.dilation_nd, "g": [getattr(self, "num_groups", 1)]}
        texts = (f"{letter}{_joined(values)}" for letter, values in numbers.items() if {*values} != {1})
        return " ".join(["x".join(map(str, self.window)), *texts])

    @property
    def spans(self) -> Sequence[int]:
        """The extent of the window along each axis, dilation included."""
        return [1 + step * (size - 1) for size, step in zip(self.window, self.dilation_nd, strict=True)]

    def places_along(self, length: int, window: Window) -> WindowPositions:
        """The positions of the window along an axis of some length."""
        return places_read(length, window, self.padding_mode)

    def places(self, lengths: Sequence[int]) -> list[WindowPositions]:
        """The positions of the window along each axis."""
        windows = map(Window, self.spans, self.stride_nd, self.pre_padding, self.post_padding)
        return [self.places_along(length, window) for length, window in zip(lengths, windows, strict=True)]

    def steps(self, lengths: Sequence[int]) -> list[int]:
        """The strides, as far as they are seen: the second window is past an input of some lengths by longer ones too.

        XLA pads the input up to the last window, and a product of lengths beyond int64 ends the process.
        """
        axes = zip(self.stride_nd, lengths, self.places(lengths), strict=True)
        return [
            stride if length == UNKNOWN else min(stride, max(length + place.before, 1))
            for stride, length, place in axes
        ]

    def position(self, place: Shape, tap: Shape, places: Sequence[WindowPositions]) -> Shape:
        """The indices of element ``tap`` of the window at position ``place``; outside of the tensor where padded."""
        axes = zip(place, self.stride_nd, tap, self.dilation_nd, places, strict=True)
        return tuple(p * stride + f * dilation - places.before for p, stride, f, dilation, places in axes)

    def taps_before(self, axis: int, start: Any, end: int, xp: Any = np) -> Any:
        """The number of elements of the window that are before ``end``, if the first one is at ``start``."""
        return xp.clip(-((start - end) // self.dilation_nd[axis]), 0, self.window[axis])

    def taps_read(self, lengths: Sequence[int]) -> list[range]:
        """The elements of the window, along each axis, that are inside of the input at some position, and few others.

        There is at least one, and one that is past the input at all positions if the window has one.
        """
        # a SAME mode allows windows that are far longer than the input, whose elements take time even outside of it
        results: list[range] = []
        for axis, (length, (count, before, _)) in enumerate(zip(lengths, self.places(lengths), strict=True)):
            first = int(self.taps_before(axis, (count - 1) * self.stride_nd[axis] - before, 0))
            first = min(first, before // self.dilation_nd[axis], self.window[axis] - 1)
            end = int(self.taps_before(axis, -before, length)) + 1
            results.append(range(first, min(max(first + 1, end), self.window[axis])))
        return results

    def infer_lengths(self, x: TensorType) -> Shape:
        """Check the window against the input, and return the dims of the output along the axes of the window.

        Raises:
            LayerError: input, window, strides and padding do not fit together.
        """
        self._check_numbers(x)
        lengths, places = x.shape[2:], self.places(x.shape[2:])
        numbers = [place.length for place in places]
        for axis, (length, count) in enumerate(zip(lengths, numbers, strict=True), 2):
            longest = max(count, length + places[axis - 2].before + places[axis - 2].after)
            require(longest <= LONGEST, f"axis {axis} of {x} has {longest} elements with its padding", TOO_LONG)
            require(length != 0, f"axis {axis} of the input {x} has no elements", why="a window needs elements to read")
            require(
                length == UNKNOWN or count >= 1,
                f"along axis {axis} of the input {x}, {length} elements give an output of {count}",
                why=f"the window extends over {self.spans[axis - 2]} elements, "
                f"and the padding is {self.pre_padding[axis - 2]} before and {self.post_padding[axis - 2]} after",
                fix="choose a smaller window or dilation, or a larger pre_padding and post_padding",
            )
        return tuple(UNKNOWN if length == UNKNOWN else count for length, count in zip(lengths, numbers, strict=True))

    def _check_numbers(self, x: TensorType) -> None:
        window, count = next(iter(self.LEAST)), len(self.window)
        require(
            x.is_number,
            f"the input is {x}, but must be numeric",
            fix="convert it with add_cast",
            why="windows are reduced to sums or maxima",
        )
        require(
            1 <= count <= 3, f"{window} is {self.window}, but must have 1 to 3 numbers", why="a window has 1 to 3 axes"
        )
        require(
            x.rank == count + 2,
            f"the input {x} has {x.rank} axes, but must have {count + 2}",
            why=f"they are batch, channel, and one for each number in {window} {self.window}",
        )
        for name, least in self.LEAST.items():
            numbers: Sequence[int] = getattr(self, name)
            require(
                len(numbers) == count,
                f"{name} is {numbers}, but must have {count} numbers, one for each axis",
                why="a window has a length, stride, padding and dilation along each axis",
                fix="give as many numbers as kernel_size has",
            )
            require(
                min(numbers) >= least,
                f"{name} is {numbers}, but its numbers must be at least {least}",
                why="no window is smaller, and none steps back",
            )
            require(max(numbers) <= LONGEST, f"{name} is {numbers}, but must be at most {LONGEST}", TOO_LONG)
        require(max(self.spans) <= LONGEST, f"the window extends over {self.spans} elements", TOO_LONG)


def _joined(numbers: Sequence[int]) -> str:
    """Numbers of axes, once if they are equal."""
    return "x".join(map(str, numbers if len({*numbers}) > 1 else numbers[:1]))
