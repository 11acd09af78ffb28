"""TensorRT's types for shapes and permutations."""

import math
import operator
from collections.abc import Iterable, Iterator, Sequence
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


class Dims(tuple[int, ...]):
    """The lengths of the axes of a tensor, at most eight; -1 is an unknown length.

    A length can be set in place, ``shape[0] = 4``, as in TensorRT, which changes this object and nothing else: what a
    property or method returns is a copy. It is a tuple in all else, and can be the key of a dict: from the first
    ``hash`` on it is fixed, and so are the dims that an attribute of a layer holds.
    """

    MAX_DIMS = 8
    NAMES: tuple[str, ...] = ()
    """The names of the lengths, where their number is fixed."""

    def __new__(cls, *args: Any, **named: Any) -> "Dims":
        shape = cls._given(*args, **named)
        if isinstance(shape, UNORDERED) or not isinstance(shape, Iterable):
            hint = f": write ({shape},)" if isinstance(shape, int) else ""
            raise TypeError(f"{cls.__name__} takes a sequence of ints, not {shape!r}{hint}")
        lengths = tuple(map(_length, shape))
        if len(lengths) > cls.MAX_DIMS:
            raise ValueError(f"a shape has at most {cls.MAX_DIMS} axes, not {len(lengths)}")
        if cls.NAMES and len(lengths) != len(cls.NAMES):
            raise ValueError(f"{cls.__name__} has {len(cls.NAMES)} numbers, not {len(lengths)}")
        return super().__new__(cls, lengths)

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
        return isinstance(other, tuple | list) and self._now() == tuple(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(tuple(self.fixed()))

    def fixed(self) -> Self:
        """Return this object, which cannot be changed in place from here on."""
        vars(self)["_is_fixed"] = True
        return self

    def __setitem__(self, index: int | slice, value: Any) -> None:
        if vars(self).get("_is_fixed"):
            what = "these dims are the key of a dict, or in an attribute of a layer, and cannot be changed in place"
            raise TypeError(f"{what}; change list(dims), and pass that")
        numbers = list(self)
        numbers[index] = value
        if len(numbers) != len(self):
            raise ValueError(f"a slice of {len(self)} dims is set to {value!r}, which would make them {len(numbers)}")
        vars(self)["_changed"] = tuple(type(self)(numbers))

    # ------------------------------------------------------------------ what a tuple does, with the changed lengths

    def _now(self) -> tuple[int, ...]:
        return vars(self).get("_changed") or tuple.__getitem__(self, slice(None))

    def __iter__(self) -> Iterator[int]:
        return iter(self._now())

    def __getitem__(self, index: Any) -> Any:
        return self._now()[index]

    def __contains__(self, key: object) -> bool:
        return key in self._now()

    def __add__(self, other: Any) -> Any:
        return self._now() + tuple(other)

    def __radd__(self, other: Any) -> Any:
        return tuple(other) + self._now()

    def __mul__(self, count: Any) -> Any:
        return self._now() * count

    __rmul__ = __mul__

    def __lt__(self, other: Any) -> bool:
        return self._now() < tuple(other)

    def __le__(self, other: Any) -> bool:
        return self._now() <= tuple(other)

    def __gt__(self, other: Any) -> bool:
        return self._now() > tuple(other)

    def __ge__(self, other: Any) -> bool:
        return self._now() >= tuple(other)

    def index(self, *args: Any) -> int:
        """The index of the first length that equals a number."""
        return self._now().index(*args)

    def count(self, value: Any) -> int:
        """How many lengths equal a number."""
        return self._now().count(value)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._now(),)

    def __repr__(self) -> str:
        return str(self._now())


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
