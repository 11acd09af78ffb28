"""TensorRT's types for shapes and permutations."""

import math
import operator
from collections.abc import Iterable, Sequence
from functools import total_ordering
from typing import Annotated, Any, NoReturn, Self

UNORDERED = (str, bytes, bytearray, set, frozenset, dict)
"""Iterables that are not sequences of numbers."""


def check_word(name: str, value: int) -> int:
    """Return ``value``, which must fit into 64 bits.

    Raises:
        ValueError: it does not.
    """
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{name} is a number of {value.bit_length()} bits, and may have a sign and 63 bits")
    return value


def _length(length: Any) -> int:
    try:
        return check_word("a length", operator.index(length))
    except TypeError:
        raise TypeError(f"a length is an int, and -1 where only a call knows it, not {length!r}") from None


@total_ordering
class Dims(Sequence[int]):
    """The lengths of the axes of a tensor, at most eight; -1 is an unknown length.

    A length can be set in place, ``shape[0] = 4``, as in TensorRT, which changes this object and nothing else: what a
    property or method returns is a copy. It is a sequence that equals tuples and lists of its lengths, and as in
    TensorRT no tuple, so that ``"%s" % shape`` is its text. It can be the key of a dict: from the first ``hash`` on it
    is fixed, and so are the dims that an attribute of a layer holds.
    """

    MAX_DIMS = 8
    NAMES: tuple[str, ...] = ()
    """The names of the lengths, where their number is fixed."""

    def __init__(self, *args: Any, **named: Any) -> None:
        shape = self._given(*args, **named)
        if isinstance(shape, UNORDERED) or not isinstance(shape, Iterable):
            hint = f": write ({shape},)" if isinstance(shape, int) else ""
            raise TypeError(f"{type(self).__name__} takes a sequence of ints, not {shape!r}{hint}")
        lengths = tuple(map(_length, shape))
        if len(lengths) > self.MAX_DIMS:
            raise ValueError(f"a shape has at most {self.MAX_DIMS} axes, not {len(lengths)}")
        if self.NAMES and len(lengths) != len(self.NAMES):
            raise ValueError(f"{type(self).__name__} has {len(self.NAMES)} numbers, not {len(lengths)}")
        self._lengths, self._is_fixed = lengths, False

    @classmethod
    def _given(cls, *args: Any, **named: Any) -> Any:
        """The lengths as a sequence, given as one, as an argument each, or not at all, which means zeros."""
        if not args and not named:
            return (0,) * len(cls.NAMES)
        if len(args) + len(named) == 1 and (args or "shape" in named):
            return args[0] if args else named["shape"]
        rest = cls.NAMES[len(args) :]
        if len(args) > len(cls.NAMES) or set(rest) != set(named):
            wanted = ", ".join(cls.NAMES) or "a sequence of ints"
            raise TypeError(f"{cls.__name__} takes {wanted}, not {len(args)} arguments and {sorted(named)}")
        return (*args, *(named[name] for name in rest))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple | list | Dims) and self._lengths == tuple(other)

    def __lt__(self, other: Any) -> bool:
        return self._lengths < tuple(other)

    def __hash__(self) -> int:
        return hash(self.fixed()._lengths)

    def fixed(self) -> Self:
        """Return this object, which cannot be changed in place from here on."""
        self._is_fixed = True
        return self

    def __len__(self) -> int:
        return len(self._lengths)

    def __getitem__(self, index: Any) -> Any:
        return self._lengths[index]

    def __setitem__(self, index: int | slice, value: Any) -> None:
        if self._is_fixed:
            what = "these dims are the key of a dict, or in an attribute of a layer, and cannot be changed in place"
            raise TypeError(f"{what}; change list(dims), and pass that")
        numbers = list(self)
        numbers[index] = value
        if len(numbers) != len(self):
            raise ValueError(f"a slice of {len(self)} dims is set to {value!r}, which would make them {len(numbers)}")
        self._lengths = type(self)(numbers)._lengths

    def __add__(self, other: Any) -> Any:
        return self._lengths + tuple(other)

    def __radd__(self, other: Any) -> Any:
        return tuple(other) + self._lengths

    def __mul__(self, count: Any) -> Any:
        return self._lengths * count

    __rmul__ = __mul__

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._lengths,)

    def __repr__(self) -> str:
        return str(self._lengths)


class Dims2(Dims):
    """Two lengths."""

    NAMES = ("dim0", "dim1")


class DimsHW(Dims2):
    """A height and a width."""

    NAMES = ("h", "w")

    @property
    def h(self) -> int:
        """The height."""
        return self[0]

    @h.setter
    def h(self, height: int) -> None:
        self[0] = height

    @property
    def w(self) -> int:
        """The width."""
        return self[1]

    @w.setter
    def w(self, width: int) -> None:
        self[1] = width


class Dims3(Dims):
    """Three lengths."""

    NAMES = ("dim0", "dim1", "dim2")


class Dims4(Dims):
    """Four lengths."""

    NAMES = ("dim0", "dim1", "dim2", "dim3")


def volume(iterable: Iterable[int]) -> int:
    """The product of lengths, the number of elements of a shape; 1 if there are none."""
    return math.prod(iterable)


class Permutation(tuple[int, ...]):
    """An order of axes: element ``i`` is the axis of the input that becomes axis ``i`` of the output."""

    def __new__(cls, order: Iterable[int] = ()) -> "Permutation":
        return super().__new__(cls, (operator.index(axis) for axis in order))

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise TypeError("an order is a tuple, which cannot be changed in place; change list(order), and pass that")


def check_dims(name: str, value: Any) -> Dims:
    """Return ``value`` as Dims that do not change.

    Raises:
        TypeError: it is not a sequence of ints.
        ValueError: it has too many, or one that does not fit into 64 bits.
    """
    try:
        return Dims(value).fixed()
    except TypeError:
        hint = f": write ({value},) for one axis, ({value}, {value}) for two" if type(value) is int else ""
        raise TypeError(f"{name} must be a sequence of ints, not {value!r}{hint}") from None
    except ValueError as error:
        raise ValueError(f"{name} cannot be {value!r}: {error}") from None


def check_order(name: str, value: Any) -> Permutation:
    """Return ``value`` as a Permutation.

    Raises:
        TypeError: it is not a sequence of ints.
        ValueError: it has one that does not fit into 64 bits.
    """
    try:
        if isinstance(value, UNORDERED):
            raise TypeError
        return Permutation(check_word(name, operator.index(element)) for element in value)
    except TypeError:
        raise TypeError(f"{name} must be a sequence of ints, not {value!r}") from None


DimsLike = Annotated[Sequence[int], Dims]
"""The annotation of attributes that take any sequence of ints, and keep Dims."""

PermutationLike = Annotated[Sequence[int], Permutation]
"""The annotation of attributes that take any sequence of ints, and keep a Permutation."""
