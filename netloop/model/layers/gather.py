"""Indexing: gather, scatter and one-hot."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from netloop.model.graph.layer import Operation, layer
from netloop.model.graph.network_base import NetworkBase
from netloop.model.graph.padded_axes import NO_NEUTRALS, Axes, Lengths, Neutrals, lengths_of, neutral
from netloop.model.graph.tensor import ITensor
from netloop.model.layers import gather_forms
from netloop.model.layers.numpy_forms import take, take_positions
from netloop.values.diagnostics import require
from netloop.values.enums import GatherMode, LayerType, ReduceOperation, ScatterMode
from netloop.values.string_arrays import STRING
from netloop.values.types import UNKNOWN, Array, Shape, TensorType, agree, broadcast, merge, normal_axis, wide


@layer(LayerType.GATHER, "Gather")
class IGatherLayer(Operation):
    """Read elements or slices of the data by index.

    ::

        DEFAULT   output[a.., i.., c..] = data[a.., indices[i..], c..]  the axis is replaced by those of the indices
        ELEMENT   output[p] = data[p, with indices[p] on the axis]      shape of the indices
        ND        output[i.., c..] = data[indices[i.., :], c..]         the last axis of the indices is a position

    With ``num_elementwise_dims`` e, the first e axes of data, indices and output are batch axes, and the formula holds
    for each batch item; in mode DEFAULT a batch axis of length 1 is broadcast.

    The indices are int32 or int64; negative ones count from the end. An index out of range is an error in the
    reference; a compiled network reads 0 or False there.

    Attributes:
        mode: DEFAULT, ELEMENT or ND.
        axis: the axis of the data, for DEFAULT and ELEMENT; a negative value counts from the end.
        num_elementwise_dims: the number of leading batch axes; 0 or 1 for DEFAULT, 0 for ELEMENT.
    """

    REQUIRED_INPUTS = 2
    MOVED_INPUTS = 1
    TAKES_STRINGS = True
    NUMPY_IS_FAST = True
    TAKES_LENGTHS = True

    mode: GatherMode = GatherMode.DEFAULT
    axis: int = 0
    num_elementwise_dims: int = 0

    def infer(self, data: TensorType, indices: TensorType) -> TensorType:
        _require_index_type(indices)
        match self.mode:
            case GatherMode.DEFAULT:
                return data.with_shape(self._shape_by_axis(data, indices))
            case GatherMode.ELEMENT:
                return data.with_shape(self._shape_by_element(data, indices))
            case GatherMode.ND:
                return data.with_shape(self._shape_by_position(data, indices))

    def _shape_by_axis(self, data: TensorType, indices: TensorType) -> Shape:
        axis, batch = _axis_of(self.axis, data), self.num_elementwise_dims
        require(
            batch in (0, 1),
            f"num_elementwise_dims is {batch}, but mode DEFAULT takes 0 or 1",
            why="the two tensors have at most the batch axis in common",
        )
        require(
            axis >= batch,
            "axis 0 is the batch axis, and cannot be gathered along",
            why="num_elementwise_dims is 1: axis 0 of data and indices is the batch",
            fix="gather along a later axis, or set num_elementwise_dims to 0",
        )
        require(
            indices.rank >= batch,
            "the indices are a scalar, but need axis 0, as num_elementwise_dims is 1",
            why="each slice of the batch has indices of its own",
            fix="reshape the indices with add_shuffle",
        )
        together = broadcast(data.shape[:batch], indices.shape[:batch])
        return together + data.shape[batch:axis] + indices.shape[batch:] + data.shape[axis + 1 :]

    def _shape_by_element(self, data: TensorType, indices: TensorType) -> Shape:
        batch = self.num_elementwise_dims
        require(
            batch == 0,
            f"num_elementwise_dims is {batch}, but mode ELEMENT takes 0",
            why="each index stands for one element, so all axes are in common",
            fix="set num_elementwise_dims to 0",
        )
        _require_within(data, indices, _axis_of(self.axis, data))
        return indices.shape

    def _shape_by_position(self, data: TensorType, indices: TensorType) -> Shape:
        batch = self.num_elementwise_dims
        _require_positions(indices)
        most = min(data.rank, indices.rank - 1)
        require(
            0 <= batch <= most,
            f"num_elementwise_dims is {batch}, but must be 0 to {most} here",
            why=f"the data {data} and the indices {indices}, without their last axis, have {most} axes in common",
        )
        require(
            agree(data.shape[:batch], indices.shape[:batch]),
            f"the data {data} and the indices {indices} differ in their first {batch} axes",
            why=f"num_elementwise_dims is {batch}: these are batch axes",
        )
        depth = _depth_of(indices, data.rank - batch)
        together = merge(data.shape[:batch], indices.shape[:batch])
        return together + indices.shape[batch:-1] + data.shape[batch + depth :]

    def neutrals(self, types: Sequence[Any], padded: Sequence[Axes]) -> Neutrals | None:
        # garbage among the indices reads any elements, or zeros
        return NO_NEUTRALS

    def evaluate(self, data: Array, indices: Array) -> Array:
        match self.mode:
            case GatherMode.DEFAULT if self.num_elementwise_dims:
                return _take_in_batch(data, indices, self.axis % data.ndim)
            case GatherMode.DEFAULT:
                return _take(data, indices, self.axis % data.ndim)
            case GatherMode.ELEMENT:
                return _take_elements(data, indices, self.axis % data.ndim)
            case GatherMode.ND:
                return _take_positions(data, indices, self.num_elementwise_dims)

    def host_value(self, data: Array, indices: Array) -> Array:
        is_plain = self.mode is GatherMode.DEFAULT and not self.num_elementwise_dims
        if data.dtype == STRING and is_plain and indices.size:
            # no program stands for the text at a position out of range
            _require_in_range(indices, self.axis % data.ndim, data.shape[self.axis])
            return np.asarray(data.take(indices, self.axis), STRING)
        if data.dtype == STRING or self.num_elementwise_dims or self.mode is GatherMode.ELEMENT:
            return self.evaluate(data, indices)
        return (
            take_positions(data, indices) if self.mode is GatherMode.ND else take(data, indices, self.axis % data.ndim)
        )

    def _shape_of(self, data: Any, indices: Any) -> Shape:
        return self.infer(TensorType(data.dtype, data.shape), TensorType(indices.dtype, indices.shape)).shape

    @property
    def has_zero_filled(self) -> bool:
        """Whether there is ``zero_filled`` for its mode."""
        return self.mode is not GatherMode.ND and not self.num_elementwise_dims

    def zero_filled(self, data: Array, indices: Array) -> Array:
        """The output as a program gives it, by numpy: an index out of range reads 0."""
        if 0 in data.shape:
            return np.zeros(self._shape_of(data, indices), data.dtype)
        axis = self.axis % data.ndim
        wrong = (indices < -data.shape[axis]) | (indices >= data.shape[axis])
        safe = np.where(wrong, 0, indices)
        if self.mode is GatherMode.ELEMENT:
            result, lost = np.take_along_axis(gather_forms.reached(data, indices, axis), safe, axis), wrong
        else:
            # numpy takes a single element as a number, which cannot be written to
            result, lost = np.asarray(np.take(data, safe, axis)), (*(slice(None),) * axis, wrong)
        result[lost] = 0
        return result

    def lower(self, data: Any, indices: Any, lengths: Lengths = ()) -> Any:
        if 0 in data.shape:
            return jnp.zeros(self._shape_of(data, indices), data.dtype)
        data, indices = jnp.asarray(data), jnp.asarray(indices)
        own = lengths_of(0, lengths)
        if self.mode is GatherMode.ND:
            indices = gather_forms.unpadded_positions(indices, data.shape, self.num_elementwise_dims, own)
        else:
            indices = gather_forms.unpadded(indices, data.shape, self.axis % data.ndim, own)
        match self.mode:
            case GatherMode.DEFAULT if self.num_elementwise_dims:
                return gather_forms.lower_in_batch(data, indices, self.axis % data.ndim - 1)
            case GatherMode.DEFAULT:
                return jnp.take(data, indices, self.axis, mode="fill", fill_value=0)
            case GatherMode.ELEMENT:
                return gather_forms.lower_elements(data, indices, self.axis % data.ndim)
            case GatherMode.ND:
                return gather_forms.lower_positions(data, indices, self.num_elementwise_dims)


def _require_index_type(indices: TensorType) -> None:
    require(
        indices.is_index,
        f"the indices must be int32 or int64, not {indices}",
        fix="convert them with add_cast",
        why="an index is a whole number",
    )


def _axis_of(axis: int, data: TensorType) -> int:
    require(
        data.rank > 0,
        f"the data is a scalar, {data}, without an axis to index",
        why="an index is a position along an axis",
        fix="use the data as it is, or add an axis with add_unsqueeze",
    )
    return normal_axis(axis, data.rank)


def _require_within(data: TensorType, indices: TensorType, axis: int) -> None:
    """Raise LayerError unless the indices have the rank of the data and, except on ``axis``, no larger dims."""
    require(
        data.rank == indices.rank,
        f"the data has {data.rank} axes and the indices {indices.rank}; mode ELEMENT needs equal numbers",
        why="each index replaces one coordinate of its own position",
    )
    for other, (length, reach) in enumerate(zip(data.shape, indices.shape, strict=True)):
        require(
            other == axis or UNKNOWN in (length, reach) or reach <= length,
            f"axis {other} has {reach} indices, but the data only {length} elements",
            why=f"on all axes except {axis}, an index has the position of its element",
        )


def _require_positions(indices: TensorType) -> None:
    require(
        indices.rank > 0,
        "the indices are a scalar; in mode ND their last axis is a position in the data",
        why="mode ND reads one position from each row of the indices",
        fix="reshape the indices with add_shuffle, or set mode to DEFAULT",
    )
    require(
        indices.shape[-1] != UNKNOWN,
        f"the last axis of the indices {indices} has an unknown length",
        why="it is the number of axes that they index, and determines the rank of the output",
    )


def _depth_of(indices: TensorType, most: int) -> int:
    depth = indices.shape[-1]
    require(
        1 <= depth <= most,
        f"the last axis of the indices has {depth} elements, but must have 1 to {most} here",
        why="it is a position in the data, with one coordinate for each indexed axis",
    )
    return depth


def _require_in_range(indices: Array, axis: int, length: int) -> None:
    wrong = indices[(indices < -length) | (indices >= length)]
    require(
        wrong.size == 0,
        f"index {wrong[0] if wrong.size else ''} is out of range: axis {axis} has {length} elements",
        why=f"an index must be at least {-length} and less than {length}",
    )


def _take(data: Array, indices: Array, axis: int) -> Array:
    _require_in_range(indices, axis, data.shape[axis])
    result = np.empty(data.shape[:axis] + indices.shape + data.shape[axis + 1 :], data.dtype)
    before = (slice(None),) * axis
    for position in np.ndindex(indices.shape):
        result[before + position] = data[(*before, indices[position])]
    return result


def _take_in_batch(data: Array, indices: Array, axis: int) -> Array:
    batch = indices.shape[0] if data.shape[0] == 1 else data.shape[0]
    result = np.empty((batch, *data.shape[1:axis], *indices.shape[1:], *data.shape[axis + 1 :]), data.dtype)
    for member in range(batch):
        result[member] = _take(data[member % data.shape[0]], indices[member % indices.shape[0]], axis - 1)
    return result


def _take_elements(data: Array, indices: Array, axis: int) -> Array:
    _require_in_range(indices, axis, data.shape[axis])
    result = np.empty(indices.shape, data.dtype)
    for position in np.ndindex(indices.shape):
        result[position] = data[(*position[:axis], indices[position], *position[axis + 1 :])]
    return result


def _take_positions(data: Array, indices: Array, batch: int) -> Array:
    depth = indices.shape[-1]
    for axis in range(depth):
        _require_in_range(indices[..., axis], batch + axis, data.shape[batch + axis])
    result = np.empty(indices.shape[:-1] + data.shape[batch + depth :], data.dtype)
    for position in np.ndindex(indices.shape[:-1]):
        result[position] = data[(*position[:batch], *indices[position])]
    return result


@layer(LayerType.SCATTER, "Scatter")
class IScatterLayer(Operation):
    """Write updates into the data by index, or combine them with its elements.

    ::

        ELEMENT   output[p, with indices[p] on the axis] = updates[p]     indices and updates have the same shape
        ND        output[indices[i.., :], c..] = updates[i.., c..]        the last axis of the indices is a position

    With a reduction, the old element and all updates of one position are summed, multiplied, or their maximum or
    minimum taken, half types in float32; TensorRT has no reductions.

    The indices are int32 or int64; negative ones count from the end. Data and updates have the same element type: any,
    with a reduction numbers. An index out of range is an error in the reference; a compiled network drops its update.
    If several updates go to one position without a reduction, the last one stays in the reference; in TensorRT and in
    a compiled network it is undefined which.

    Attributes:
        mode: ELEMENT or ND.
        axis: the axis of the data, for ELEMENT; a negative value counts from the end.
        reduction: NONE to write, or SUM, PROD, MAX or MIN.
    """

    REQUIRED_INPUTS = 3
    TAKES_STRINGS = True
    NUMPY_IS_FAST = True
    TAKES_LENGTHS = True

    mode: ScatterMode
    axis: int = 0
    reduction: ReduceOperation = ReduceOperation.NONE

    def infer(self, data: TensorType, indices: TensorType, updates: TensorType) -> TensorType:
        _require_index_type(indices)
        require(
            data.dtype == updates.dtype,
            f"the updates are {updates}, but the data {data}; both must have the same element type",
            why="TensorRT's networks are strongly typed: nothing is converted silently",
            fix="convert one of them with add_cast",
        )
        operations = ", ".join(operation.name for operation in COMBINED)
        require(
            self.reduction in COMBINED,
            f"the reduction is {self.reduction.name}, but must be one of {operations}",
            why="values that meet at one position are combined in any order",
        )
        require(
            self.reduction is ReduceOperation.NONE or data.is_number,
            f"the reduction {self.reduction.name} takes numbers, not {data}",
            fix="convert them with add_cast",
        )
        wanted = self._updates_shape(data, indices)
        require(
            agree(updates.shape, wanted),
            f"the updates are {updates}, but must be {updates.with_shape(wanted)}",
            why=f"that shape follows from data {data} and indices {indices} in mode {self.mode.name}",
        )
        return data.without_value()

    def _updates_shape(self, data: TensorType, indices: TensorType) -> Shape:
        if self.mode is ScatterMode.ELEMENT:
            _require_within(data, indices, _axis_of(self.axis, data))
            return indices.shape
        _require_positions(indices)
        return indices.shape[:-1] + data.shape[_depth_of(indices, data.rank) :]

    def beyond_tensorrt(self, data: TensorType, indices: TensorType, updates: TensorType) -> str:
        return "" if self.reduction is ReduceOperation.NONE else f"combines updates by {self.reduction.name}"

    def neutrals(self, types: Sequence[Any], padded: Sequence[Axes]) -> Neutrals | None:
        # an index out of range drops its update
        return neutral(1, padded[1], np.iinfo(types[1].dtype).max)

    def evaluate(self, data: Array, indices: Array, updates: Array) -> Array:
        result, news = self._wide(data).copy(), self._wide(updates)
        combine, _ = COMBINED[self.reduction]
        for place, update in self._writes(data, indices, news):
            result[place] = combine(result[place], update)
        return result.astype(data.dtype)

    def _writes(self, data: Array, indices: Array, updates: Array) -> Iterator[tuple[Any, Any]]:
        """The positions in the data, each with its update."""
        self._require_inside(data, indices)
        if self.mode is ScatterMode.ELEMENT:
            axis = self.axis % data.ndim
            for position in np.ndindex(indices.shape):
                yield (*position[:axis], indices[position], *position[axis + 1 :]), updates[position]
            return
        for position in np.ndindex(indices.shape[:-1]):
            yield tuple(indices[position]), updates[position]

    def _require_inside(self, data: Array, indices: Array) -> None:
        if self.mode is ScatterMode.ELEMENT:
            axis = self.axis % data.ndim
            _require_in_range(indices, axis, data.shape[axis])
            return
        for axis in range(indices.shape[-1]):
            _require_in_range(indices[..., axis], axis, data.shape[axis])

    def host_value(self, data: Array, indices: Array, updates: Array) -> Array:
        result, news = self._wide(data).copy(), self._wide(updates)
        # numpy cannot combine elements of types that are not its own at indices
        if result.dtype.isbuiltin != 1:
            return self.evaluate(data, indices, updates)
        self._require_inside(data, indices)
        places, (combine, _) = self._places(indices), COMBINED[self.reduction]
        if isinstance(combine, np.ufunc):
            combine.at(result, places, news)
        else:
            result[places] = news
        return result.astype(data.dtype)

    def lower(self, data: Any, indices: Any, updates: Any, lengths: Lengths = ()) -> Any:
        into, indices = jnp.asarray(self._wide(data)), jnp.asarray(indices)
        own = lengths_of(0, lengths)
        if self.mode is ScatterMode.ND:
            indices = gather_forms.unpadded_positions(indices, data.shape, 0, own)
        else:
            indices = gather_forms.unpadded(indices, data.shape, self.axis % data.ndim, own)
        _, write = COMBINED[self.reduction]
        return write(into.at[self._places(indices)], self._wide(updates)).astype(data.dtype)

    def _places(self, indices: Any) -> tuple[Any, ...]:
        """The positions in the data, as an index of an array."""
        if self.mode is ScatterMode.ND:
            return gather_forms.coordinates(indices)
        places: list[Any] = list(np.indices(indices.shape, sparse=True))
        places[self.axis] = indices
        return tuple(places)

    def _wide(self, x: Any) -> Any:
        """``x``, with half types in float32 for a reduction."""
        return x if self.reduction is ReduceOperation.NONE else wide(x)


# fmt: off
COMBINED: dict[ReduceOperation, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], jax.Array]]] = {
    ReduceOperation.NONE: (lambda old, new: new, lambda at, new: at.set(new, mode="drop")),
    ReduceOperation.SUM:  (np.add,               lambda at, new: at.add(new, mode="drop")),
    ReduceOperation.PROD: (np.multiply,          lambda at, new: at.multiply(new, mode="drop")),
    ReduceOperation.MAX:  (np.maximum,           lambda at, new: at.max(new, mode="drop")),
    ReduceOperation.MIN:  (np.minimum,           lambda at, new: at.min(new, mode="drop")),
}
# fmt: on
"""How an update is combined with the old element: in the reference, and in JAX's indexed updates."""


@layer(LayerType.ONE_HOT, "OneHot")
class IOneHotLayer(Operation):
    """One-hot encoding of indices along a new axis, with given values for off and on.

    output[a.., d, b..] = values[1] if d == indices[a.., b..] else values[0], for d from 0 to depth - 1.

    The indices are int32 or int64; the values, [off, on], are of any type, which is that of the output; the depth is
    a positive scalar. An index outside of 0 to depth - 1 gives only off values; negative indices do not count from
    the end.

    Attributes:
        axis: the position of the new axis in the output; a negative value counts from the end of the output.
    """

    REQUIRED_INPUTS = 3
    SHAPE_INPUTS = frozenset({2})
    TAKES_STRINGS = True
    NUMPY_IS_FAST = True

    axis: int

    def infer(self, indices: TensorType, values: TensorType, depth: TensorType) -> TensorType:
        _require_index_type(indices)
        require(
            agree(values.shape, (2,)),
            f"the values are {values}, but must have 2 elements",
            why="they are the values for off and on",
        )
        require(
            depth.is_index and depth.rank == 0,
            f"the depth must be an int32 or int64 scalar, not {depth}",
            why="it is the length of the new axis",
        )
        axis = normal_axis(self.axis, indices.rank + 1)
        return values.with_shape((*indices.shape[:axis], self._length(depth), *indices.shape[axis:]))

    @staticmethod
    def _length(depth: TensorType) -> int:
        if depth.value is None:
            return UNKNOWN
        length = int(depth.value)
        require(length > 0, f"the depth is {length}, but must be positive", why="it is the length of the new axis")
        return length

    def neutrals(self, types: Sequence[Any], padded: Sequence[Axes]) -> Neutrals | None:
        return None if any(padded[1:]) else NO_NEUTRALS

    def evaluate(self, indices: Array, values: Array, depth: Array) -> Array:
        axis = self.axis % (indices.ndim + 1)
        result = np.full((*indices.shape[:axis], int(depth), *indices.shape[axis:]), values[0], values.dtype)
        for position in np.ndindex(indices.shape):
            if 0 <= indices[position] < depth:
                result[(*position[:axis], indices[position], *position[axis:])] = values[1]
        return result

    def host_value(self, indices: Array, values: Array, depth: Array) -> Array:
        # parts of one element, as numpy makes texts of another type of single ones
        return np.where(self._is_on(np, indices, depth), values[1:], values[:1])

    def lower(self, indices: Any, values: Any, depth: Array) -> Any:
        values = jnp.asarray(values)
        return jnp.where(self._is_on(jnp, indices, depth), values[1], values[0])

    def _is_on(self, xp: Any, indices: Any, depth: Array) -> Any:
        """Whether the place of an element along the new axis is its index."""
        indices = xp.expand_dims(indices, self.axis)
        shape = [1] * indices.ndim
        shape[self.axis] = int(depth)
        return indices == xp.arange(int(depth), dtype=indices.dtype).reshape(shape)


class IndexMethods(NetworkBase):
    """The ``add_`` methods of this family."""

    FAMILY = "by index"

    def add_gather(self, input: ITensor, indices: ITensor, axis: int) -> IGatherLayer:
        """The slices of ``input`` along ``axis`` at ``indices``.

        ::

            DEFAULT   output[a.., i.., c..] = data[a.., indices[i..], c..]  the axis is replaced by those of the indices
            ELEMENT   output[p] = data[p, with indices[p] on the axis]      shape of the indices
            ND        output[i.., c..] = data[indices[i.., :], c..]         the last axis of the indices is a position

        With ``num_elementwise_dims`` e, the first e axes of data, indices and output are batch axes, and the formula
        holds for each batch item; in mode DEFAULT a batch axis of length 1 is broadcast.

        The indices are int32 or int64; negative ones count from the end. An index out of range is an error in the
        reference; a compiled network reads 0 or False there.

        Args:
            input: input 0.
            indices: input 1.
            axis: the axis of the data, for DEFAULT and ELEMENT; a negative value counts from the end.

        Further attributes of the layer, which have defaults: ``mode``, ``num_elementwise_dims``.
        """
        return self.add(IGatherLayer(axis=axis), input=input, indices=indices)

    def add_gather_v2(self, input: ITensor, indices: ITensor, mode: GatherMode) -> IGatherLayer:
        """The elements or slices of ``input`` at ``indices``, which ``mode`` interprets.

        ::

            DEFAULT   output[a.., i.., c..] = data[a.., indices[i..], c..]  the axis is replaced by those of the indices
            ELEMENT   output[p] = data[p, with indices[p] on the axis]      shape of the indices
            ND        output[i.., c..] = data[indices[i.., :], c..]         the last axis of the indices is a position

        With ``num_elementwise_dims`` e, the first e axes of data, indices and output are batch axes, and the formula
        holds for each batch item; in mode DEFAULT a batch axis of length 1 is broadcast.

        The indices are int32 or int64; negative ones count from the end. An index out of range is an error in the
        reference; a compiled network reads 0 or False there.

        Args:
            input: input 0.
            indices: input 1.
            mode: DEFAULT, ELEMENT or ND.

        Further attributes of the layer, which have defaults: ``axis``, ``num_elementwise_dims``.
        """
        return self.add(IGatherLayer(mode=mode), input=input, indices=indices)

    def add_scatter(self, data: ITensor, indices: ITensor, updates: ITensor, mode: ScatterMode) -> IScatterLayer:
        """``data`` with ``updates`` written at ``indices``.

        ::

            ELEMENT   output[p, with indices[p] on the axis] = updates[p]     indices and updates have the same shape
            ND        output[indices[i.., :], c..] = updates[i.., c..]        the last axis of the indices is a position

        With a reduction, the old element and all updates of one position are summed, multiplied, or their maximum or
        minimum taken, half types in float32; TensorRT has no reductions.

        The indices are int32 or int64; negative ones count from the end. Data and updates have the same element
        type: any, with a reduction numbers. An index out of range is an error in the reference; a compiled network
        drops its update. If several updates go to one position without a reduction, the last one stays in the
        reference; in TensorRT and in a compiled network it is undefined which.

        Args:
            data: input 0.
            indices: input 1.
            updates: input 2.
            mode: ELEMENT or ND.

        Further attributes of the layer, which have defaults: ``axis``, ``reduction``.
        """
        return self.add(IScatterLayer(mode=mode), data=data, indices=indices, updates=updates)

    def add_one_hot(self, indices: ITensor, values: ITensor, depth: ITensor, axis: int) -> IOneHotLayer:
        """``values[1]`` at the index along a new axis of length ``depth``, and ``values[0]`` elsewhere.

        output[a.., d, b..] = values[1] if d == indices[a.., b..] else values[0], for d from 0 to depth - 1.

        The indices are int32 or int64; the values, [off, on], are of any type, which is that of the output; the
        depth is a positive scalar. An index outside of 0 to depth - 1 gives only off values; negative indices do not
        count from the end.

        Args:
            indices: input 0.
            values: input 1.
            depth: input 2.
            axis: the position of the new axis in the output; a negative value counts from the end of the output.
        """
        return self.add(IOneHotLayer(axis=axis), indices=indices, values=values, depth=depth)
