"""The types of tensors: element type and shape, and the value itself where it is known and small."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from netloop.values.diagnostics import LayerError, require
from netloop.values.enums import DataType
from netloop.values.string_arrays import STRING, type_name

Array = npt.NDArray[Any]
FlatArray = Annotated[Array, "1-D"]
"""Weights as TensorRT returns them: they have a number of elements, and no shape."""
MaskedArray = np.ma.MaskedArray[Any, Any]
"""A value of which some elements are unknown, which are masked."""
Shape = tuple[int, ...]

UNKNOWN = -1
"""An unknown length of an axis."""

LARGEST_KNOWN_VALUE = 1024
"""The size in bytes up to which known values are kept while a network is built."""

LARGEST_TENSOR = 1 << 40
"""The most bytes of a tensor: XLA ends the process where sizes overflow, or memory for them is not available."""

LARGEST_INDEX = (1 << 31) - 1
"""The largest number of type int32."""

LARGEST_CONSTANT = 1 << 20
"""The most elements of an array that lowering makes part of a program: XLA compiles 2^27 for half a minute, in 2 GB."""

# fmt: off
NUMPY_TYPES: dict[DataType, np.dtype[Any]] = {
    DataType.FLOAT:    np.dtype(np.float32),
    DataType.HALF:     np.dtype(np.float16),
    DataType.BF16:     np.dtype(jnp.bfloat16),
    DataType.DOUBLE:   np.dtype(np.float64),
    DataType.FP8:      np.dtype(jnp.float8_e4m3fn),
    DataType.E4M3FNUZ: np.dtype(jnp.float8_e4m3fnuz),
    DataType.E5M2:     np.dtype(jnp.float8_e5m2),
    DataType.E5M2FNUZ: np.dtype(jnp.float8_e5m2fnuz),
    DataType.FP4:      np.dtype(jnp.float4_e2m1fn),
    DataType.E8M0:     np.dtype(jnp.float8_e8m0fnu),
    DataType.INT2:     np.dtype(jnp.int2),
    DataType.INT4:     np.dtype(jnp.int4),
    DataType.INT8:     np.dtype(np.int8),
    DataType.INT16:    np.dtype(np.int16),
    DataType.INT32:    np.dtype(np.int32),
    DataType.INT64:    np.dtype(np.int64),
    DataType.UINT2:    np.dtype(jnp.uint2),
    DataType.UINT4:    np.dtype(jnp.uint4),
    DataType.UINT8:    np.dtype(np.uint8),
    DataType.UINT16:   np.dtype(np.uint16),
    DataType.UINT32:   np.dtype(np.uint32),
    DataType.UINT64:   np.dtype(np.uint64),
    DataType.BOOL:     np.dtype(np.bool_),
    DataType.STRING:   STRING,
}
# fmt: on
DATA_TYPES = {dtype: name for name, dtype in NUMPY_TYPES.items()}

FLOATS = {NUMPY_TYPES[name] for name in (DataType.FLOAT, DataType.HALF, DataType.BF16, DataType.DOUBLE)}
HALVES = {NUMPY_TYPES[name] for name in (DataType.HALF, DataType.BF16)}
INDICES = {np.dtype(np.int32), np.dtype(np.int64)}
UNSIGNED = {np.dtype(other) for other in (np.uint8, np.uint16, np.uint32, np.uint64)}
INTEGERS = {np.dtype(other) for other in (np.int8, np.int16, np.int32, np.int64)} | UNSIGNED
TINY = {NUMPY_TYPES[name] for name in (DataType.INT2, DataType.UINT2, DataType.INT4, DataType.UINT4)}
"""Integers of less than a byte, which can be moved, compared for equality and converted, but not computed with."""
OWN = {dtype for name, dtype in NUMPY_TYPES.items() if int(name) >= int(DataType.DOUBLE)}
"""Element types that TensorRT does not have."""


def numpy_type(name: DataType) -> np.dtype[Any]:
    """The numpy type of a TensorRT type."""
    return NUMPY_TYPES[name]


def nptype(trt_type: DataType) -> type[np.generic]:
    """The type of numpy itself for a TensorRT type, as TensorRT's function of this name returns it.

    Raises:
        TypeError: numpy itself has none, as for BF16, FP8, INT4, FP4 and E8M0.
    """
    result = NUMPY_TYPES.get(trt_type)
    if result is None or result.isbuiltin != 1:
        raise TypeError(f"numpy itself has no type for {trt_type}")
    return result.type


def data_type(dtype: Any) -> DataType:
    """The TensorRT type of a numpy type.

    Raises:
        ValueError: networks have no tensors of this type.
    """
    result = DATA_TYPES.get(np.dtype(dtype))
    if result is None:
        raise ValueError(
            f"no tensor has the element type {np.dtype(dtype)}; there are {', '.join(map(str, DATA_TYPES))}"
        )
    return result


@dataclass(frozen=True)
class TensorType:
    """The type of a tensor, as far as it is known before the network runs.

    Attributes:
        dtype: the element type.
        shape: the dims, -1 where unknown.
        value: the value, where it follows from constants and shapes only and is small.
        partial: the same where only some elements follow from them; the others are masked.
        is_tensor: whether it is a tensor: neither a sequence of them nor optional, and of a known rank.
    """

    is_tensor: ClassVar[bool] = True

    dtype: np.dtype[Any]
    shape: Shape = ()
    value: Array | None = field(default=None, compare=False, repr=False)
    partial: MaskedArray | None = field(default=None, compare=False, repr=False)

    @staticmethod
    def of(value: Array) -> "TensorType":
        """Return the type of a known value, with the value if it is small."""
        small = value.nbytes <= LARGEST_KNOWN_VALUE
        return TensorType(value.dtype, value.shape, value if small else None)

    @property
    def present(self) -> "TensorType":
        """The type of the value of an optional if it is present; else the type itself."""
        return self

    @property
    def held_shape(self) -> Shape | None:
        """The shape of the tensor, or of each tensor of a sequence; None where even their rank varies."""
        return self.shape

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def is_float(self) -> bool:
        """Whether the elements are floating-point numbers."""
        return self.dtype in FLOATS

    @property
    def is_known_integer(self) -> bool:
        """Whether the elements are integers or bools whose values are known."""
        if self.is_string:
            return False
        return self.value is not None and not jnp.issubdtype(self.dtype, jnp.floating)

    @property
    def is_integer(self) -> bool:
        """Whether the elements are signed or unsigned integers of 8 to 64 bits, whose arithmetic wraps."""
        return self.dtype in INTEGERS

    @property
    def is_number(self) -> bool:
        """Whether the elements support arithmetic: floating-point numbers, and integers of 8 to 64 bits."""
        return self.is_float or self.is_integer

    @property
    def is_index(self) -> bool:
        """Whether the elements are int32 or int64, the types of sizes, axes and indices."""
        return self.dtype in INDICES

    @property
    def is_bool(self) -> bool:
        """Whether the elements are bools."""
        return self.dtype == np.bool_

    @property
    def is_string(self) -> bool:
        """Whether the elements are strings, which only the host computes with."""
        return self.dtype == STRING

    @property
    def is_fixed(self) -> bool:
        """Whether every length is known."""
        return UNKNOWN not in self.shape

    @property
    def volume(self) -> int:
        """The number of elements, -1 where a length is unknown."""
        return math.prod(self.shape) if self.is_fixed else UNKNOWN

    @property
    def nbytes(self) -> int:
        """The size in bytes; negative where a length is unknown."""
        return self.volume * self.dtype.itemsize

    @property
    def is_possible(self) -> bool:
        """Whether a tensor can be this large, whatever the unknown lengths are."""
        # the lengths of an empty tensor count too: XLA ends the process where their product overflows 64 bits
        known = math.prod(length for length in self.shape if length > 0)
        return known * self.dtype.itemsize <= LARGEST_TENSOR

    def with_shape(self, shape: Iterable[int]) -> "TensorType":
        """Return the type with another shape."""
        return TensorType(self.dtype, tuple(shape))

    def with_dtype(self, dtype: Any) -> "TensorType":
        """Return the type with another element type."""
        return TensorType(np.dtype(dtype), self.shape)

    def without_value(self) -> "TensorType":
        """Return the type without its value."""
        return replace(self, value=None, partial=None)

    def ints(self) -> list[int] | None:
        """The value as a flat list of Python ints, or None where it is unknown."""
        return None if self.value is None else [int(value) for value in self.value.reshape(-1)]

    def elements(self) -> MaskedArray | None:
        """The value, masked where it is unknown; None if there are too many elements to know some of them."""
        if self.partial is not None or self.value is not None:
            return self.partial if self.value is None else np.ma.MaskedArray(self.value)
        if not self.is_tensor or self.is_string or not 0 <= self.nbytes <= LARGEST_KNOWN_VALUE:
            return None
        return np.ma.MaskedArray(np.ones(self.shape, self.dtype), np.ones(self.shape, np.bool_))

    def lengths(self) -> Shape:
        """The elements of a list of lengths, of known number; -1 for those that are unknown, or that are no lengths."""
        elements = self.elements()
        if elements is None:
            return (UNKNOWN,) * self.volume
        return tuple(max(int(length), UNKNOWN) for length in elements.filled(UNKNOWN))

    def __str__(self) -> str:
        return f"{type_name(self.dtype)}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class SequenceType(TensorType):
    """The type of a sequence of tensors of one element type; its values are tuples of arrays.

    Attributes:
        dtype: the element type.
        shape: ``(-1,)``: the number of tensors is data-dependent.
        element: the dims of each tensor, -1 where they vary; None where even the rank does.
        is_empty: whether there is no tensor that would determine ``element``, which is the declared one then.
    """

    shape: Shape = (UNKNOWN,)
    element: Shape | None = None
    is_empty: bool = False
    is_tensor = False

    @property
    def held_shape(self) -> Shape | None:
        return self.element

    @property
    def is_possible(self) -> bool:
        return self.element is None or self.with_shape(self.element).is_possible

    def joined(self, other: "SequenceType") -> "SequenceType":
        """Return the type of a sequence that has either type: the tensors that are there decide, if they have one rank.

        A join loses information only, in any order, so that types of recurrences which depend on each other settle.
        """
        a, b = self.element, other.element
        is_known = all(type_.is_empty or type_.element is not None for type_ in (self, other))
        if not is_known or (a is not None and b is not None and len(a) != len(b)):
            return replace(self, element=None, is_empty=False)
        if self.is_empty is other.is_empty:
            return other if a is None else self if b is None else replace(self, element=_either(a, b))
        return other if self.is_empty else self

    def __str__(self) -> str:
        tensors = f"{type_name(self.dtype)}[...]" if self.element is None else str(self.with_shape(self.element))
        return f"sequence of {tensors}"


@dataclass(frozen=True)
class OptionalType(TensorType):
    """The type of a tensor or sequence that may be absent; the value of an absent one is ``ABSENT``.

    Attributes:
        dtype: the element type.
        shape: ``(-1,)``: whether there is a value is data-dependent.
        element: the type of the value if it is present.
    """

    shape: Shape = (UNKNOWN,)
    element: TensorType | None = None
    is_tensor = False

    @staticmethod
    def around(element: TensorType) -> "OptionalType":
        """Return the type of an optional value."""
        return OptionalType(element.dtype, element=element.without_value())

    @property
    def present(self) -> TensorType:
        assert self.element is not None
        return self.element

    @property
    def held_shape(self) -> Shape | None:
        return self.present.held_shape

    @property
    def is_possible(self) -> bool:
        return self.present.is_possible

    def __str__(self) -> str:
        return f"optional {self.element}"


@dataclass(frozen=True)
class UnrankedType(TensorType):
    """The type of a tensor whose rank follows from the branch that a conditional takes.

    Only conditionals and the outputs of a network take such a tensor.

    Attributes:
        dtype: the element type.
        shape: ``(-1,)``: not even the number of axes is known.
        shapes: the dims that it has in different branches.
    """

    shape: Shape = (UNKNOWN,)
    shapes: frozenset[Shape] = frozenset()
    is_tensor = False

    @property
    def held_shape(self) -> Shape | None:
        return None

    @property
    def is_possible(self) -> bool:
        return all(self.with_shape(shape).is_possible for shape in self.shapes)

    def __str__(self) -> str:
        return " or ".join(
            str(self.with_shape(shape)) for shape in sorted(self.shapes, key=lambda shape: (len(shape), shape))
        )


def type_in_form(
    dtype: np.dtype[Any], shape: Shape | None, sequence: bool = False, optional: bool = False
) -> TensorType:
    """Return the type of a tensor or a sequence of tensors, either of which may be optional."""
    assert sequence or shape is not None
    type_ = SequenceType(dtype, element=shape) if sequence else TensorType(dtype, shape or ())
    return OptionalType.around(type_) if optional else type_


class Tensors(tuple[Array, ...]):
    """The value of a sequence of tensors, or of maps."""


class Absent:
    """The value of an optional that is absent."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = Absent()


def join(a: TensorType, b: TensorType) -> TensorType | None:
    """Return the type of a value that may have either type; None if there is none.

    Lengths that differ are unknown. The result is optional if one of the types is.
    """
    if isinstance(a, OptionalType) or isinstance(b, OptionalType):
        element = join(a.present, b.present)
        return None if element is None else OptionalType.around(element)
    if isinstance(a, UnrankedType) or isinstance(b, UnrankedType):
        return join_ranks(a, b)
    if a.dtype != b.dtype or type(a) is not type(b) or a.rank != b.rank:
        return None
    if isinstance(a, SequenceType) and isinstance(b, SequenceType):
        return a.joined(b)
    if not a.is_tensor:
        return a if a == b else None
    return a.with_shape(_either(a.shape, b.shape))


def join_ranks(a: TensorType, b: TensorType) -> UnrankedType | None:
    """Return the type of a tensor that may have either type, of any ranks; None if there is none."""
    both = [a, b]
    if a.dtype != b.dtype or not all(
        tensor_type.is_tensor or isinstance(tensor_type, UnrankedType) for tensor_type in both
    ):
        return None
    shapes = (
        tensor_type.shapes if isinstance(tensor_type, UnrankedType) else {tensor_type.shape} for tensor_type in both
    )
    return UnrankedType(a.dtype, shapes=frozenset().union(*shapes))


def _either(a: Shape, b: Shape) -> Shape:
    return tuple(x if x == y else UNKNOWN for x, y in zip(a, b, strict=True))


def require_indexable(x: TensorType, axis: int) -> None:
    """Raise a LayerError if an axis that JAX indexes by int32 is too long for that."""
    what = f"axis {axis} of {x} is indexed by int32, and can have at most {LARGEST_INDEX} elements"
    require(x.shape[axis] <= LARGEST_INDEX, what, "longer axes have indices that int32 does not have")


def require_possible(found: TensorType, what: str) -> None:
    """Raise a LayerError if a tensor, ``what`` in words, would be larger than any tensor."""
    require(found.is_possible, f"{what} is {found}", f"a tensor has at most {LARGEST_TENSOR} bytes")


def slice_at(x: Array, position: int, axis: int) -> Array:
    """Return the slice of an array at a position of an axis, as an array even if it is a single element."""
    return x[(slice(None),) * axis + (position, ...)]


def constant_module(elements: int) -> Any:
    """Return the array module for arrays that follow from shapes: numpy, or JAX if they are too large for constants."""
    return np if elements <= LARGEST_CONSTANT else jnp


def wide(x: Any) -> Any:
    """Convert ``x`` to float32 if it is half-precision, which is too narrow for sums."""
    return x.astype(np.float32) if x.dtype in HALVES else x


def agree(a: Shape, b: Shape) -> bool:
    """Whether two shapes can be equal, where an unknown length may be any."""
    return len(a) == len(b) and all(x == y or UNKNOWN in (x, y) for x, y in zip(a, b, strict=True))


def merge(a: Shape, b: Shape) -> Shape:
    """Combine what is known from two shapes that agree."""
    return tuple(y if x == UNKNOWN else x for x, y in zip(a, b, strict=True))


def broadcast(*shapes: Shape) -> Shape:
    """Return the shape that shapes of equal rank are broadcast to.

    Raises:
        LayerError: the ranks differ, or two lengths of an axis do and neither is 1.
    """
    ranks = {len(shape) for shape in shapes}
    require(
        len(ranks) == 1,
        f"the inputs have {_listed(map(len, shapes))} axes, but must have the same number",
        why="TensorRT broadcasts axes of length 1, but never adds an axis",
        fix="add the missing axes with add_shuffle and reshape_dims, or give a constant axes of length 1",
    )
    return tuple(_broadcast_length(axis, lengths) for axis, lengths in enumerate(zip(*shapes, strict=True)))


def _broadcast_length(axis: int, lengths: tuple[int, ...]) -> int:
    fixed = {length for length in lengths if length not in (1, UNKNOWN)}
    why = "along each axis, the inputs must have the same length, or length 1"
    fix = "make the lengths equal, with add_slice or add_shuffle; an axis of length 1 is repeated"
    require(len(fixed) <= 1, f"axis {axis} has {_listed(lengths)} elements", why, fix)
    if fixed:
        return fixed.pop()
    return UNKNOWN if UNKNOWN in lengths else 1


def _listed(numbers: Iterable[int]) -> str:
    *most, last = map(str, numbers)
    return f"{', '.join(most)} and {last}" if most else last


def normal_axis(axis: int, rank: int, what: str = "axis") -> int:
    """Return ``axis`` counted from the front; a negative one counts from the end.

    Raises:
        LayerError: there is no such axis.
    """
    # hundreds of layers ask in a call, and the texts take longer
    if -rank <= axis < rank:
        return axis % rank
    require(
        rank > 0,
        f"{what} {axis} is not one of the axes: there are none",
        why="a scalar has no axis",
        fix="give a tensor with an axis, or add one with add_unsqueeze",
    )
    allowed = f"0 to {rank - 1}, or negative from the end"
    why, fix = "axes are counted from 0", f"write {rank - 1} or -1 for the last axis"
    raise LayerError(f"{what} {axis} is not one of the {rank} axes ({allowed})", why, fix)


def axes_of(mask: int, rank: int) -> tuple[int, ...]:
    """Return the axes of a bitmask, in which bit ``i`` stands for axis ``i``.

    Raises:
        LayerError: a bit is past the last axis.
    """
    require(
        0 <= mask < 1 << rank,
        f"the bitmask {mask:#b} has bits past the {rank} axes of the input",
        why="bit i stands for axis i",
        fix=f"write 1 << 0 for axis 0, and so on up to 1 << {rank - 1}",
    )
    return tuple(axis for axis in range(rank) if mask >> axis & 1)
