"""Optimization profiles: the ranges of the shapes of dynamic inputs and of the values of shape inputs."""

from collections.abc import Callable, Sequence
from operator import index
from typing import NamedTuple

from netloop.values.checked_attributes import CheckedAttributes
from netloop.values.dims import Dims


class Range(NamedTuple):
    """The minimum, optimum and maximum of each length of a shape, or of each element of a value."""

    min: Sequence[int]
    opt: Sequence[int]
    max: Sequence[int]

    def holds(self, numbers: Sequence[int]) -> bool:
        """Whether all numbers are between the minimum and the maximum."""
        return len(numbers) == len(self.min) and all(
            low <= number <= high for low, number, high in zip(self.min, numbers, self.max, strict=True)
        )


class IOptimizationProfile(CheckedAttributes):
    """Ranges for the shapes of dynamic inputs, and for the values of shape inputs.

    netloop compiles a program for the shapes of each call, so a profile makes nothing faster; shapes outside it are
    refused, as by TensorRT.
    """

    UNLISTED = frozenset({"shapes", "values"})

    extra_memory_target: float = 1.0
    profile_stream: int = 0

    def __init__(self) -> None:
        self._shapes: dict[str, Range] = {}
        self._values: dict[str, Range] = {}

    def __bool__(self) -> bool:
        """True: a profile has whole ranges only, which ``set_shape`` checks."""
        return True

    __nonzero__ = __bool__

    def set_shape(self, input: str, min: Sequence[int], opt: Sequence[int], max: Sequence[int]) -> None:
        """Set the range of the shape of an input.

        Raises:
            RuntimeError: the three shapes have different ranks, or are not in order.
        """
        self._shapes[input] = _range(input, min, opt, max, Dims)

    def set_shape_input(self, input: str, min: Sequence[int], opt: Sequence[int], max: Sequence[int]) -> None:
        """Set the range of the values of a shape input.

        Raises:
            RuntimeError: the three values have different lengths, or are not in order.
        """
        self._values[input] = _range(input, min, opt, max, _numbers)

    def get_shape(self, input: str) -> list[Dims]:
        """The minimum, optimum and maximum shape of an input; empty if none is set."""
        return [Dims(shape) for shape in self._shapes.get(input, ())]

    def get_shape_input(self, input: str) -> list[list[int]]:
        """The minimum, optimum and maximum values of a shape input; empty if none are set."""
        return [list(shape) for shape in self._values.get(input, ())]

    def shapes(self) -> dict[str, Range]:
        """The ranges of shapes, by the name of the input."""
        return dict(self._shapes)

    def values(self) -> dict[str, Range]:
        """The ranges of values, by the name of the input."""
        return dict(self._values)


def _numbers(value: Sequence[int]) -> tuple[int, ...]:
    """The elements of a value, of any number, as the paddings of a tensor of more than four axes."""
    return tuple(map(index, value))


def _range(
    name: str,
    minimum: Sequence[int],
    optimum: Sequence[int],
    maximum: Sequence[int],
    checked: Callable[[Sequence[int]], Sequence[int]],
) -> Range:
    range_ = Range(checked(minimum), checked(optimum), checked(maximum))
    if not len(range_.min) == len(range_.opt) == len(range_.max):
        raise RuntimeError(
            f"the range of {name!r} has {len(range_.min)}, {len(range_.opt)} and {len(range_.max)} numbers"
        )
    if not range_.holds(range_.opt):
        raise RuntimeError(
            f"the range of {name!r} is not in order: min {range_.min}, opt {range_.opt}, max {range_.max}"
        )
    return range_
