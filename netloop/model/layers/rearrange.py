"""Layers that rearrange elements: shuffle, squeeze, unsqueeze, concatenation."""

import math
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.model.graph.layer import ALL_INPUTS, Operation, check_tensor, layer
from netloop.model.graph.network_base import NetworkBase, check_tensors, third_from_end
from netloop.model.graph.padded_axes import NO_NEUTRALS, Axes, Lengths, Neutrals, length_along
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import LayerError, require
from netloop.values.dims import Dims, DimsLike, PermutationLike
from netloop.values.enums import LayerType
from netloop.values.types import LARGEST_CONSTANT, TINY, UNKNOWN, Array, Shape, TensorType, agree, merge, normal_axis


class Rearrangement(Operation):
    """An operation whose output has the elements of its first input, along other axes; input 1 describes these."""

    MAX_INPUTS = 2
    SHAPE_INPUTS = frozenset({1})
    NUMPY_IS_FAST = True
    MOVED_INPUTS = 1
    TAKES_STRINGS = True

    @property
    def keeps_elements(self) -> bool:
        return True


@layer(LayerType.SHUFFLE, "Shuffle")
class IShuffleLayer(Rearrangement):
    """Transpose, reshape and transpose again; each of the three is optional.

    Axis i of the result of a transpose is axis ``permutation[i]`` of its input. Any element type, which is kept. Input
    1, 1-D, int32 or int64, replaces ``reshape_dims``.

    Attributes:
        first_transpose: the order of the axes before the reshape.
        reshape_dims: the dims after the reshape. One may be -1, and is inferred from the others; copied dims take no
            part in that, so it is known for an empty input too.
        second_transpose: the order of the axes after the reshape.
        zero_is_placeholder: whether 0 copies the dim at the same position of the input of the reshape, or means 0.
    """

    PADDED_SIZES = frozenset({1})
    INPUT_OF = {"reshape_dims": 1}
    TAKES_LENGTHS = True

    first_transpose: PermutationLike | None = None
    reshape_dims: DimsLike | None = None
    second_transpose: PermutationLike | None = None
    zero_is_placeholder: bool = True

    @property
    def keeps_elements(self) -> bool:
        return self.first_transpose is None and self.second_transpose is None

    def infer(self, x: TensorType, reshape: TensorType | None = None) -> TensorType:
        shape = self._transposed(x.shape, "first_transpose")
        if reshape is not None:
            shape = self._reshaped_by_input(shape, reshape)
        elif self.reshape_dims is not None:
            shape = self._reshaped(shape, self.reshape_dims)
        return x.with_shape(self._transposed(shape, "second_transpose"))

    def neutrals(self, types: Sequence[Any], padded: Sequence[Axes]) -> Neutrals | None:
        return None if any(padded[1:]) or (len(types) > 1 and types[1].ints() is None) else NO_NEUTRALS

    def keeps_end(self, types: Sequence[Any], padded: Axes) -> bool:
        """Whether padding of input 0 is behind all elements before and after a reshape, which moves no element then."""
        dims = types[1].ints() if len(types) > 1 else self.reshape_dims
        if dims is None:
            return len(types) == 1
        before = [(types[0].shape[axis], axis in padded) for axis in self.first_transpose or range(types[0].rank)]
        copied = [axis for axis, length in enumerate(dims) if length == 0 and self.zero_is_placeholder]
        # of a copy of the padded axis the rest does not change
        is_copied = any(before[axis][1] for axis in copied)
        after = [before[a] if a in copied else (n, n == UNKNOWN and not is_copied) for a, n in enumerate(dims)]
        return _keeps_end(before, after)

    def _transposed(self, shape: Shape, name: str) -> Shape:
        order = getattr(self, name)
        if order is None:
            return shape
        require(
            sorted(order) == list(range(len(shape))),
            f"{name} is {tuple(order)}, but must have each of the {len(shape)} axes once",
            why=f"what it transposes has the shape {shape}",
            fix=f"list the numbers from 0 to {len(shape) - 1} in the new order of the axes",
        )
        return tuple(shape[axis] for axis in order)

    def _reshaped_by_input(self, shape: Shape, reshape: TensorType) -> Shape:
        require(
            reshape.rank == 1 and reshape.is_index,
            f"the new shape is 1-D, int32 or int64, not {reshape}",
            why="it has one number for each axis",
        )
        require(
            reshape.is_fixed,
            f"the new shape {reshape} has an unknown number of dims",
            why="the rank of every tensor is known while building",
        )
        most = Dims.MAX_DIMS
        require(
            reshape.volume <= most,
            f"the new shape has {reshape.volume} dims, and may have at most {most}",
            why="TensorRT's tensors have no more axes",
        )
        dims = reshape.ints()
        return self._partly_reshaped(shape, reshape.lengths()) if dims is None else self._reshaped(shape, dims)

    def _partly_reshaped(self, shape: Shape, dims: Shape) -> Shape:
        """The known part of the shape after a reshape to dims of which some, here -1, are unknown."""
        copied = [axis for axis, length in enumerate(dims) if length == 0 and self.zero_is_placeholder]
        return tuple((*shape, *(UNKNOWN,) * len(dims))[axis] if axis in copied else n for axis, n in enumerate(dims))

    def _reshaped(self, shape: Shape, dims: Sequence[int]) -> Shape:
        """The shape after a reshape of ``shape`` to ``dims``; both may have unknown dims."""
        dims = tuple(dims)
        require(
            min(dims, default=0) >= UNKNOWN,
            f"reshape_dims {dims} have a dim below -1",
            why="-1 stands for the length that remains, and no other negative number has a meaning",
            fix="write -1 once, or a positive length",
        )
        require(dims.count(UNKNOWN) <= 1, f"reshape_dims {dims} have -1 more than once", "only one dim can be inferred")
        copied = [axis for axis, length in enumerate(dims) if length == 0 and self.zero_is_placeholder]
        require(
            max(copied, default=-1) < len(shape),
            f"reshape_dims {dims} copy dim {max(copied, default=-1)} of an input with {len(shape)} axes",
            fix="set zero_is_placeholder to False if a dim of 0 is meant",
            why="a 0 copies the dim of the same axis of the input",
        )
        before = [length for axis, length in enumerate(shape) if axis not in copied]
        after = [length for axis, length in enumerate(dims) if axis not in copied]
        empty = UNKNOWN not in dims and any(shape[axis] == 0 for axis in copied)
        require(
            empty or _fits(before, after),
            f"reshape_dims {dims} do not fit a tensor of shape {shape}",
            why="a reshape keeps the number of elements",
            fix="write -1 for one of the dims, which then follows from the others",
        )
        rest = _volume_left(before, after)
        return tuple(shape[a] if a in copied else rest if n == UNKNOWN else n for a, n in enumerate(dims))

    def _moved(self, x: Any, reshape: Array | None) -> Any:
        dims = self.reshape_dims if reshape is None else [int(length) for length in reshape]
        self._transposed(x.shape, "first_transpose")
        x = x if self.first_transpose is None else x.transpose(self.first_transpose)
        x = x if dims is None else x.reshape(self._reshaped(x.shape, dims))
        self._transposed(x.shape, "second_transpose")
        return x if self.second_transpose is None else x.transpose(self.second_transpose)

    def evaluate(self, x: Array, reshape: Array | None = None) -> Array:
        return np.asarray(self._moved(x, reshape))  # numpy makes a number of an array without axes

    def lower(self, x: Any, reshape: Array | None = None, lengths: Lengths = ()) -> Any:
        x = jnp.asarray(x)
        dims = self.reshape_dims if reshape is None else tuple(reshape.tolist())
        if not lengths or dims is None:
            return self._moved(x, reshape)
        first, second = self.first_transpose or range(x.ndim), self.second_transpose or range(len(dims))
        before = {axis: lengths[0][own] for axis, own in enumerate(first) if own in lengths[0]}
        after = {own: lengths[-1][axis] for axis, own in enumerate(second) if axis in lengths[-1]}
        x = x.transpose(tuple(first))
        x = _reshaped_within(x, self._reshaped(x.shape, dims), before, after)
        return x.transpose(tuple(second))


def _reshaped_within(x: jax.Array, shape: Shape, before: Mapping[int, Any], after: Mapping[int, Any]) -> jax.Array:
    """A reshape of padded axes: element i of what is within their lengths before is element i of that after it."""
    pairs = [(n, a in before) for a, n in enumerate(x.shape)], [(n, a in after) for a, n in enumerate(shape)]
    if not x.size or _keeps_end(*pairs):
        return x.reshape(shape)
    old = [before.get(axis, length) for axis, length in enumerate(x.shape)]
    new = [after.get(axis, length) for axis, length in enumerate(shape)]
    # rows that stay whole
    ends = zip(reversed(old), reversed(new), strict=False)
    rows = sum(1 for _ in takewhile(lambda pair: all(isinstance(n, int) for n in pair) and pair[0] == pair[1], ends))
    lead, kept = x.ndim - rows, shape[: len(shape) - rows]
    place = jnp.zeros(kept, np.int32)
    for axis in range(len(kept)):
        place = place * new[axis] + lax.broadcasted_iota(np.int32, kept, axis)
    position, stride = jnp.zeros(kept, np.int32), 1
    for axis in reversed(range(lead)):
        length = jnp.maximum(old[axis], 1)
        position += place % length * stride
        place //= length
        stride *= x.shape[axis]
    return jnp.take(x.reshape((stride, *x.shape[lead:])), position, 0, mode="clip")


def _keeps_end(before: Sequence[tuple[int, bool]], after: Sequence[tuple[int, bool]]) -> bool:
    """Whether padding is behind all elements of axes before and after a reshape, each with whether it is padded."""
    # within each element of axes that stay as they are, such as rows of a batch
    same = next((at for at, (a, b) in enumerate(zip(before, after, strict=False)) if a != b or a[1]), 0)
    return _is_first(before[same:]) and _is_first(after[same:])


def _is_first(axes: Sequence[tuple[int, bool]]) -> bool:
    """Whether one of some axes is open, and those before it have length 1."""
    open_axes = [axis for axis, (_, is_open) in enumerate(axes) if is_open]
    return len(open_axes) == 1 and all(length == 1 for length, _ in axes[: open_axes[0]])


def _known_volume(lengths: Sequence[int]) -> int:
    return math.prod(length for length in lengths if length != UNKNOWN)


def _fits(before: Sequence[int], after: Sequence[int]) -> bool:
    """Whether two shapes can have the same volume; each -1 is any dim, and ``after`` has at most one."""
    old, new = _known_volume(before), _known_volume(after)
    if UNKNOWN in after:
        return new > 0 and (UNKNOWN in before or old % new == 0)
    if UNKNOWN in before:
        return new % old == 0 if old else new == 0
    return old == new


def _volume_left(before: Sequence[int], after: Sequence[int]) -> int:
    """The dim that -1 in ``after`` stands for."""
    if UNKNOWN in before or UNKNOWN not in after:
        return UNKNOWN
    return _known_volume(before) // _known_volume(after)


@layer(LayerType.SQUEEZE, "Squeeze")
class ISqueezeLayer(Rearrangement):
    """Remove axes of length 1.

    Any element type, which is kept. Input 1, 1-D, int32 or int64, lists the axes, negative ones from the end; without
    it every axis of length 1 is removed.
    """

    def infer(self, x: TensorType, axes: TensorType | None = None) -> TensorType:
        if axes is not None and axes.rank != 1:
            what, why = f"the axes are 1-D, not {axes}", "there is one number for each axis that is removed"
            fix = "give a tensor of one axis, such as add_constant((1,), np.array([0], np.int32)).get_output(0)"
            raise LayerError(what, why, fix)
        if axes is not None and axes.value is None:
            count = axis_count(axes)
            require(
                count <= x.rank,
                f"{count} axes are to be removed, and the input {x} has {x.rank}",
                why="an axis can be removed only once",
            )
            return x.with_shape((UNKNOWN,) * (x.rank - count))
        dropped = self._dropped(x, axes)
        return x.with_shape(length for axis, length in enumerate(x.shape) if axis not in dropped)

    @staticmethod
    def _dropped(x: TensorType, axes: TensorType | None) -> tuple[int, ...]:
        if axes is None:
            require(
                x.is_fixed,
                f"the input {x} has axes of unknown length",
                why="without a list of axes every axis of length 1 is removed, so all dims must be known",
                fix="list the axes: set_input(1, axes)",
            )
            return tuple(axis for axis, length in enumerate(x.shape) if length == 1)
        dropped = distinct_axes(axes, x.rank)
        for axis in dropped:
            require(
                x.shape[axis] in (1, UNKNOWN),
                f"axis {axis} has {x.shape[axis]} elements, and only axes of length 1 can be removed",
                why="removing a longer axis would lose elements",
                fix="merge axes with add_shuffle and reshape_dims",
            )
        return dropped

    def neutrals(self, types: Sequence[Any], padded: Sequence[Axes]) -> Neutrals | None:
        return None if any(padded[1:]) else NO_NEUTRALS

    def evaluate(self, x: Array, axes: Array | None = None) -> Array:
        return np.squeeze(x, self._dropped(TensorType.of(x), None if axes is None else TensorType.of(axes)))

    def lower(self, x: Any, axes: Array | None = None) -> Any:
        return jnp.squeeze(jnp.asarray(x), None if axes is None else tuple(axes.tolist()))


@layer(LayerType.UNSQUEEZE, "Unsqueeze")
class IUnsqueezeLayer(Rearrangement):
    """Add axes of length 1.

    Any element type, which is kept. Input 1, 1-D or 0-D, int32 or int64, lists the positions of the new axes in the
    output, negative ones from the end; the output has at most eight axes.
    """

    REQUIRED_INPUTS = 2

    def infer(self, x: TensorType, axes: TensorType) -> TensorType:
        added = self._added(x.rank, axes)
        if added is None:
            return x.with_shape((UNKNOWN,) * (x.rank + axis_count(axes)))
        lengths = iter(x.shape)
        return x.with_shape(1 if axis in added else next(lengths) for axis in range(x.rank + len(added)))

    @staticmethod
    def _added(rank: int, axes: TensorType) -> tuple[int, ...] | None:
        total, most = rank + axis_count(axes), Dims.MAX_DIMS
        require(
            total <= most,
            f"the output has {total} axes, and may have at most {most}",
            why="TensorRT's tensors have no more axes",
        )
        return None if axes.value is None else distinct_axes(axes, total)

    def neutrals(self, types: Sequence[Any], padded: Sequence[Axes]) -> Neutrals | None:
        return None if any(padded[1:]) else NO_NEUTRALS

    def evaluate(self, x: Array, axes: Array) -> Array:
        added = self._added(x.ndim, TensorType.of(axes))
        assert added is not None, "the value of the axes is there"
        return np.expand_dims(x, added)

    def lower(self, x: Any, axes: Array) -> Any:
        return jnp.expand_dims(x, tuple(axes.reshape(-1).tolist()))


def axis_count(axes: TensorType) -> int:
    """The number of axes that a tensor lists, or has a number for.

    Raises:
        LayerError: it is not a list of axes, or its length is unknown, or larger than a list of axes can have.
    """
    # hundreds of layers ask for each new length of an input, and texts of errors take longer than the check
    if not (axes.is_index and axes.rank <= 1 and 0 <= axes.volume <= Dims.MAX_DIMS):
        _require_axes(axes)
    return axes.volume


def _require_axes(axes: TensorType) -> None:
    require(
        axes.is_index and axes.rank <= 1,
        f"the axes are int32 or int64, and 1-D, not {axes}",
        why="there is one number for each axis that is added",
        fix="give a tensor of one axis, such as add_constant((1,), np.array([0], np.int32)).get_output(0)",
    )
    require(
        axes.is_fixed,
        f"the number of axes in {axes} is unknown",
        why="the rank of every tensor is known while building",
    )
    # before anything is made for each of them: models of a few bytes have lists of 10^10 computed axes
    require(
        axes.volume <= Dims.MAX_DIMS,
        f"{axes} has a number for each of {axes.volume} axes, and there are at most {Dims.MAX_DIMS}",
        why="TensorRT's tensors have no more axes",
    )


def distinct_axes(axes: TensorType, rank: int) -> tuple[int, ...]:
    """The non-negative axes that a known tensor lists.

    Raises:
        LayerError: there is no such axis, or it is listed twice.
    """
    axis_count(axes)
    listed = axes.ints() or []
    numbers = tuple([normal_axis(axis, rank) for axis in listed])
    if len(set(numbers)) < len(numbers):
        raise LayerError(f"the axes {listed} list an axis twice", "each number is an axis of the output")
    return numbers


@layer(LayerType.CONCATENATION, "Concatenation")
class IConcatenationLayer(Operation):
    """Concatenate tensors along an axis.

    Any element type, the same for all inputs and the output. All inputs have the same rank, at least 1, and the same
    dims except along the axis.

    Attributes:
        axis: the axis; a negative one counts from the end.
    """

    NUMPY_IS_FAST = True
    TAKES_LENGTHS = True
    MOVED_INPUTS = ALL_INPUTS
    TAKES_STRINGS = True

    axis: int = 0

    def infer(self, *inputs: TensorType) -> TensorType:
        require(len(inputs) > 0, "the list of inputs is empty", why="the type of the output is that of the inputs")
        first = inputs[0]
        if first.rank < 1:
            what, why = f"input 0 is {first}, and has no axis to join along", "tensors are joined along an axis"
            raise LayerError(what, f"{why} that each of them has", "add one with add_unsqueeze")
        for position, tensor_type in enumerate(inputs[1:], 1):
            if tensor_type.dtype != first.dtype:
                what = f"input {position} is {tensor_type}, and input 0 is {first}"
                raise LayerError(what, "all inputs have one element type", "convert one of them with add_cast")
            require(
                tensor_type.rank == first.rank,
                f"input {position} has {tensor_type.rank} axes, and input 0 has {first.rank}",
                why="all inputs have the same number of axes",
            )
        axis, shape = normal_axis(self.axis, first.rank), first.shape
        for position, tensor_type in enumerate(inputs[1:], 1):
            shape = self._joined(shape, tensor_type.shape, axis, position)
        return first.with_shape(shape)

    @staticmethod
    def _joined(before: Shape, shape: Shape, axis: int, position: int) -> Shape:
        others = (*shape[:axis], before[axis], *shape[axis + 1 :])
        unequal = [number for number, pair in enumerate(zip(before, shape, strict=True)) if pair[0] != pair[1]]
        require(
            agree(before, others),
            f"input {position} has the shape {shape}, and the inputs before it have {before}",
            why=f"all dims except axis {axis} must be equal",
            fix=f"set axis to {unequal[0]}, the only one that differs" if len(unequal) == 1 else "",
        )
        length = UNKNOWN if UNKNOWN in (before[axis], shape[axis]) else before[axis] + shape[axis]
        result = merge(before, others)
        return (*result[:axis], length, *result[axis + 1 :])

    def neutrals(self, types: Sequence[Any], padded: Sequence[Axes]) -> Neutrals | None:
        return NO_NEUTRALS

    def evaluate(self, *inputs: Array) -> Array:
        self.infer(*map(TensorType.of, inputs))
        return np.concatenate(inputs, self.axis)

    def host_value(self, *inputs: Array) -> Array:
        return np.concatenate(inputs, self.axis)

    def lower(self, *inputs: Any, lengths: Lengths = ()) -> Any:
        axis = self.axis % inputs[0].ndim
        if not any(axis in own for own in lengths):
            return lower_joined(inputs, axis)
        return lower_joined(inputs, axis, [length_along(x, axis, own) for x, own in zip(inputs, lengths, strict=False)])


def lower_joined(parts: Sequence[Any], axis: int, lengths: Sequence[Any] = ()) -> Any:
    """Concatenate arrays of one type; those of 2 bits as bytes, because XLA aborts the process when it concatenates
    them.

    Args:
        parts: the arrays.
        axis: the axis along which they are joined.
        lengths: the lengths of their axes without padding, if one is padded.
    """
    dtype = parts[0].dtype
    if dtype in TINY:
        parts = [jnp.asarray(part).astype(np.int8) for part in parts]
    joined = jnp.concatenate(parts, axis)
    position: Any = 0
    # each part overwrites the padding of the one before it
    for part, length in zip(parts if lengths else (), lengths, strict=True):
        joined = lax.dynamic_update_slice_in_dim(joined, jnp.asarray(part), position, axis)
        position = position + length
    return joined.astype(dtype)


def unfolded(x: Any, elements: int) -> Any:
    """An array that is about to be padded to this many elements, such that XLA does not pad it while compiling."""
    # XLA evaluates sums of padded constants, one element at a time: 2^26 elements take it 4 s, 2^30 more than a minute.
    # It does not look through a barrier, for which x is written to memory: at most half of what the padding writes.
    many = elements > LARGEST_CONSTANT and elements >= 2 * x.size
    return lax.optimization_barrier(x) if many else x


class RearrangingMethods(NetworkBase):
    """The ``add_`` methods of this family."""

    FAMILY = "rearranging"

    def add_shuffle(self, input: ITensor) -> IShuffleLayer:
        """Add a transpose, reshape and transpose.

        Axis i of the result of a transpose is axis ``permutation[i]`` of its input. Any element type, which is kept.
        Input 1, 1-D, int32 or int64, replaces ``reshape_dims``.

        Args:
            input: the input.

        Further attributes of the layer, which have defaults: ``first_transpose``, ``reshape_dims``,
        ``second_transpose``, ``zero_is_placeholder``.
        """
        return self.add(IShuffleLayer(), input=input)

    def add_concatenation(self, inputs: Sequence[ITensor]) -> IConcatenationLayer:
        """Add the concatenation of tensors along ``axis``, by default the third from the end.

        Any element type, the same for all inputs and the output. All inputs have the same rank, at least 1, and the
        same dims except along the axis.

        Args:
            inputs: the inputs, in order.

        Further attributes of the layer, which have defaults: ``axis``.
        """
        tensors = check_tensors(inputs)
        axis = third_from_end(tensors[0]) if tensors else 0
        return self.add(IConcatenationLayer(axis=axis), tensors)

    def add_squeeze(self, input: ITensor, axes: ITensor | None = None) -> ISqueezeLayer:
        """Add the removal of axes of length 1: those in ``axes``, or all.

        Any element type, which is kept. Input 1, 1-D, int32 or int64, lists the axes, negative ones from the end;
        without it every axis of length 1 is removed.

        Args:
            input: input 0.
            axes: input 1, or None.
        """
        tensors = [check_tensor(input, "input")] + ([] if axes is None else [check_tensor(axes, "axes")])
        return self.add(ISqueezeLayer(), tensors)

    def add_unsqueeze(self, input: ITensor, axes: ITensor) -> IUnsqueezeLayer:
        """Add axes of length 1 at the positions ``axes`` of the output.

        Any element type, which is kept. Input 1, 1-D or 0-D, int32 or int64, lists the positions of the new axes in
        the output, negative ones from the end; the output has at most eight axes.

        Args:
            input: input 0.
            axes: input 1.
        """
        return self.add(IUnsqueezeLayer(), input=input, axes=axes)
