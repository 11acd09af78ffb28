"""Top-k: the largest or smallest elements along an axis."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from netloop.model.graph.layer import Operation, layer
from netloop.model.graph.network_base import NetworkBase
from netloop.model.graph.padded_axes import Axes, Neutrals, neutral
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.extreme_forms import extremes
from netloop.model.layers.lax_forms import on_platforms
from netloop.model.layers.numpy_forms import first_indices, total_order_keys
from netloop.model.layers.reduce import highest, lowest, only_axis
from netloop.model.layers.selection_forms import first_places
from netloop.values.diagnostics import require
from netloop.values.enums import DataType, LayerType, TopKOperation
from netloop.values.types import (
    INTEGERS,
    UNKNOWN,
    Array,
    TensorType,
    numpy_type,
    require_indexable,
)

MOST_TOPK = 3840
"""The largest k that TensorRT supports."""


@layer(LayerType.TOPK, "TopK")
class ITopKLayer(Operation):
    """Select the k largest or smallest elements along an axis, with their indices.

    Output 0 holds the values, largest first for MAX and smallest first for MIN; output 1 their indices along the axis.
    Equal elements are in the order of their indices. NaN precedes every number, for MAX and for MIN. With
    ``total_order``, floating-point numbers have the order of IEEE 754's totalOrder instead, in which the signs of NaN
    and 0 count: -NaN < -inf < ... < -0 < +0 < ... < inf < NaN. It is that of ``jax.lax.top_k``; other runtimes do not
    have it.

    Floating-point numbers and integers. The optional input 1 is k, an int32 or int64 scalar. TensorRT supports k up to
    3840, along one of the last four axes.

    Attributes:
        op: MAX or MIN.
        k: the number of elements, at most the length of the axis; input 1 replaces it.
        axes: the axis, as a bitmask with one bit.
        indices_type: INT32 or INT64.
        total_order: whether the signs of NaN and 0 count; one of netloop's own.
    """

    NUM_OUTPUTS = 2
    MAX_INPUTS = 2
    SHAPE_INPUTS = frozenset({1})
    INPUT_OF = {"k": 1}
    NUMPY_IS_FAST = True

    op: TopKOperation
    k: int
    axes: int
    indices_type: DataType = DataType.INT32
    total_order: bool = False

    def infer(self, x: TensorType, k: TensorType | None = None) -> tuple[TensorType, TensorType]:
        require(x.is_number, f"{self.op.name} takes numbers, not {x}", fix="convert them with add_cast")
        axis = only_axis(self.axes, x.rank)
        require(
            self.indices_type in (DataType.INT32, DataType.INT64),
            f"indices_type is {self.indices_type}, but must be INT32 or INT64",
            why="indices are whole numbers of 32 or 64 bits",
        )
        count = self._count(k)
        _require_count(count, axis, x.shape[axis])
        require_indexable(x, axis)
        tensor_type = x.with_shape((*x.shape[:axis], count, *x.shape[axis + 1 :]))
        return tensor_type, tensor_type.with_dtype(numpy_type(self.indices_type))

    def neutrals(self, types: Sequence[Any], padded: Sequence[Axes]) -> Neutrals | None:
        x, axis = types[0], only_axis(self.axes, types[0].rank)
        # padding comes behind equal elements, but not behind a NaN that is the last one in the total order
        last = (lowest if self.op is TopKOperation.MAX else highest)(x.dtype)
        return None if self.total_order and axis in padded[0] else neutral(0, padded[0] & {axis}, last)

    def beyond_tensorrt(self, x: TensorType, k: TensorType | None = None) -> str:
        count, axis = self._count(k), only_axis(self.axes, x.rank)
        if count > MOST_TOPK:
            return f"selects {count} elements, where TensorRT supports at most {MOST_TOPK}"
        if self.total_order:
            return "orders NaN and zeros by their signs"
        return "" if x.rank - axis <= 4 else f"uses axis {axis} of {x.rank}, where TensorRT supports the last 4"

    def _count(self, k: TensorType | None) -> int:
        if k is None:
            require(self.k >= 0, f"k is {self.k}, but must not be negative", why="it is the number of elements to keep")
            return self.k
        require(
            k.is_index and k.rank == 0,
            f"k is an int32 or int64 scalar, not {k}",
            why="it is the number of elements to keep",
        )
        if k.value is None:
            return UNKNOWN
        require(
            int(k.value) >= 0,
            f"k is {int(k.value)}, but must not be negative",
            why="it is the number of elements to keep",
        )
        return int(k.value)

    def evaluate(self, x: Array, k: Array | None = None) -> tuple[Array, Array]:
        axis, count = only_axis(self.axes, x.ndim), self.k if k is None else int(k)
        _require_count(count, axis, x.shape[axis])
        rows = np.moveaxis(x, axis, -1)
        keys = total_order_keys(rows) if self.total_order else rows
        indices = np.empty((*rows.shape[:-1], count), numpy_type(self.indices_type))
        values = np.empty(indices.shape, x.dtype)
        for row in np.ndindex(rows.shape[:-1]):
            indices[row] = self._order(keys[row].tolist())[:count]
            values[row] = rows[row][indices[row]]
        return np.moveaxis(values, -1, axis), np.moveaxis(indices, -1, axis)

    def host_value(self, x: Array, k: Array | None = None) -> tuple[Array, Array]:
        axis, count = only_axis(self.axes, x.ndim), self.k if k is None else int(k)
        # of one row, which most are, numpy's moves of axes take most of the time
        rows = x if x.ndim == 1 else np.moveaxis(x, axis, -1)
        keys = total_order_keys(rows) if self.total_order else rows
        array = first_indices(keys, count, self.op is TopKOperation.MAX)
        indices = array.astype(numpy_type(self.indices_type))
        if x.ndim == 1:
            return x[array], indices
        return np.moveaxis(np.take_along_axis(rows, array, -1), -1, axis), np.moveaxis(indices, -1, axis)

    def _order(self, row: list[Any]) -> list[int]:
        sign = -1 if self.op is TopKOperation.MAX else 1

        def rank(index: int) -> tuple[bool, Any]:
            is_number = row[index] == row[index]
            return is_number, sign * row[index] if is_number else 0

        return sorted(range(len(row)), key=rank)

    def lower(self, x: Any, k: Array | None = None) -> tuple[Any, Any]:
        axis, count = only_axis(self.axes, x.ndim), self.k if k is None else int(k)
        rows = jnp.moveaxis(jnp.asarray(x), axis, -1)
        is_best = count == 1 and not self.total_order
        values, indices = self._lower_best(rows) if is_best else self._lower_sorted(rows, count)
        return jnp.moveaxis(values, -1, axis), jnp.moveaxis(indices, -1, axis).astype(numpy_type(self.indices_type))

    def _lower_best(self, rows: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Top-1, on NVIDIA's GPUs by one reduction of pairs, and so one kernel."""
        if rows.dtype.itemsize < 4:
            return self._best_by_extremes(rows)
        return on_platforms(rows, {"cuda": self._best_pair}, self._best_by_extremes)

    def _best_pair(self, rows: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Top-1 by a reduction of the pairs of values and places."""
        is_first = jax.lax.gt if self.op is TopKOperation.MAX else jax.lax.lt

        def better(a: Any, b: Any) -> Any:
            (x, place), (y, other) = a, b
            is_level = (x == y) | ((x != x) & (y != y))
            is_better = (((x != x) | is_first(x, y)) & (y == y)) | (is_level & (place < other))
            return jnp.where(is_better, x, y), jnp.where(is_better, place, other)

        places = jax.lax.broadcasted_iota(np.int32, rows.shape, rows.ndim - 1)
        worst = (lowest if self.op is TopKOperation.MAX else highest)(rows.dtype)
        pairs = jax.lax.reduce((rows, places), (worst, np.int32(rows.shape[-1])), better, (rows.ndim - 1,))
        values, indices = pairs
        return values[..., None], indices[..., None]

    def _best_by_extremes(self, rows: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Top-1 by max, compare and min of the indices, which is faster than XLA's argmax in a loop on CPUs."""
        values = extremes(rows, [-1], self.op is TopKOperation.MAX, keepdims=True)
        places = jax.lax.broadcasted_iota(np.int32, rows.shape, rows.ndim - 1)
        is_best = (rows == values) | (rows != rows)
        return values, extremes(jnp.where(is_best, places, rows.shape[-1]), [-1], is_max=False, keepdims=True)

    def _lower_sorted(self, rows: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
        indices = first_places(jax.lax.stop_gradient(self._key(rows)), count, self.total_order)
        return jnp.take_along_axis(rows, indices, -1, mode="promise_in_bounds"), indices

    def _key(self, x: jax.Array) -> jax.Array:
        """Sort keys, larger for earlier elements, in XLA's total order: -NaN < numbers < NaN and -0 < +0."""
        if x.dtype in INTEGERS:
            return x if self.op is TopKOperation.MAX else ~x
        key = x if self.op is TopKOperation.MAX else -x
        return key if self.total_order else jnp.where(key == 0, 0, jnp.where(key != key, jnp.nan, key))


def _require_count(count: int, axis: int, length: int) -> None:
    require(
        UNKNOWN in (count, length) or count <= length,
        f"k is {count}, and axis {axis} has only {length} elements",
        fix="take k from the length, with add_shape and add_elementwise MIN",
        why="an axis has no more elements to keep",
    )


class TopKMethods(NetworkBase):
    """The ``add_`` methods of this family."""

    FAMILY = "along axes"

    def add_topk(
        self, input: ITensor, op: TopKOperation, k: int, axes: int, indices_type: DataType = DataType.INT32
    ) -> ITopKLayer:
        """Add the selection of the ``k`` largest or smallest elements along an axis, with their indices.

        Output 0 holds the values, largest first for MAX and smallest first for MIN; output 1 their indices along the
        axis. Equal elements are in the order of their indices. NaN precedes every number, for MAX and for MIN. With
        ``total_order``, floating-point numbers have the order of IEEE 754's totalOrder instead, in which the signs of
        NaN and 0 count: -NaN < -inf < ... < -0 < +0 < ... < inf < NaN. It is that of ``jax.lax.top_k``; other runtimes
        do not have it.

        Floating-point numbers and integers. The optional input 1 is k, an int32 or int64 scalar. TensorRT supports k
        up to 3840, along one of the last four axes.

        Args:
            input: the input.
            op: MAX or MIN.
            k: the number of elements, at most the length of the axis; input 1 replaces it.
            axes: the axis, as a bitmask with one bit.
            indices_type: INT32 or INT64.

        Further attributes of the layer, which have defaults: ``total_order``.
        """
        result = ITopKLayer(op=op, k=k, axes=axes, indices_type=indices_type)
        return self.add(result, input=input)
