"""Reductions of windows that slide over a tensor."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.formats.from_jax.call import ints
from netloop.formats.from_jax.rules import EquationCall, defined, on_parts, primitive, refuse
from netloop.formats.from_jax.rules.padding import filled, spread
from netloop.formats.from_jax.rules.reduce import combined, monoid, neutral
from netloop.formats.shared.word_tables import REDUCTIONS
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.dims import Dims
from netloop.values.enums import PoolingType, ReduceOperation


@primitive("reduce_window_sum", "reduce_window_max", "reduce_window_min")
def reduce_window(call: EquationCall, x: ITensor) -> ITensor:
    """The reduction of that name of windows: a pooling, or one axis after the other."""
    name = call.name.replace("_window", "")
    return _windows(call, REDUCTIONS.jax.read[name], x)


@on_parts("reduce_window_sum")
def _sums_of_parts(a: Any, b: Any, **params: Any) -> Any:
    return tuple(lax.reduce_window(part, part.dtype.type(0), lax.add, **params) for part in (a, b))


@primitive("reduce_window")
def reduce_window_by(call: EquationCall, *operands: ITensor) -> ITensor:
    """A reduction of windows by addition, multiplication, an extreme, or a logical operation."""
    by = monoid(call.params.get("jaxpr"))
    require(by is not None and len(operands) == 2, "a reduction of windows by a function of its own")
    assert by is not None
    return combined(call, by, _windows(call, by, operands[0]), operands[1])


def _windows(call: EquationCall, by: ReduceOperation, x: ITensor) -> ITensor:
    params = call.params
    sizes, strides = call.ints("window_dimensions"), call.ints("window_strides")
    padding = [tuple(ints(param)) for param in params["padding"]]
    spreads, dilations = call.ints("base_dilation"), call.ints("window_dilation")
    pools = x.type.is_float and x.type.rank in (3, 4, 5) and sizes[:2] == strides[:2] == [1, 1] and {*spreads} == {1}
    if pools and by is not ReduceOperation.PROD and not any(map(any, padding[:2])) and np.min(padding) >= 0:
        pooled = _pooled(call, by, x, sizes, strides, padding, dilations)
        if pooled is not None:
            return pooled
    start = call.make.constant(neutral(by, x.type.dtype))
    for axis, size in enumerate(sizes):
        if spreads[axis] > 1:
            x = spread(call, x, axis, spreads[axis], start)
        if any(padding[axis]):
            length = call.make.length(x, axis)
            more = sum(padding[axis])
            total = length + more if isinstance(length, int) else call.make.add(length, more)
            x = filled(call, x, [-padding[axis][0]], [total], [axis], start)
        if size > 1 or strides[axis] > 1:
            x = _along(call, by, x, axis, (size, strides[axis], dilations[axis]))
    return x


def _along(call: EquationCall, by: ReduceOperation, x: ITensor, axis: int, window: tuple[int, int, int]) -> ITensor:
    """The windows of one axis, gathered and reduced."""
    size, step, dilation = window
    length = x.type.shape[axis]
    require(length >= 0, "a window slides along an axis of unknown length", fix="give the axis a number")
    count = max((length - (size - 1) * dilation - 1) // step + 1, 0)
    places = np.arange(count)[:, None] * step + np.arange(size) * dilation
    rows = call.make.gather(x, call.make.constant(places.astype(np.int64)), axis)
    return call.make.reduce(by, rows, [axis + 1])


def _pooled(
    call: EquationCall, by: ReduceOperation, x: ITensor, sizes: Sequence[int], strides: Sequence[int],
    padding: Sequence[tuple[int, ...]], dilations: Sequence[int],
) -> ITensor | None:  # fmt: skip
    """A pooling layer; None if a window may lie in the padding only."""
    spans = [(size - 1) * dilation + 1 for size, dilation in zip(sizes, dilations, strict=True)]
    if any(max(pair) >= span for pair, span in zip(padding[2:], spans[2:], strict=True)) or x.type.rank < 4:
        return None
    make, negative = call.make, by is ReduceOperation.MIN
    kind = PoolingType.AVERAGE if by is ReduceOperation.SUM else PoolingType.MAX
    operand = make.sub(0, x) if negative else x
    layer = make.network.add_pooling_nd(operand, kind, Dims(sizes[2:]))
    layer.stride_nd, layer.dilation_nd = Dims(strides[2:]), Dims(dilations[2:])
    layer.pre_padding = Dims([before for before, _ in padding[2:]])
    layer.post_padding = Dims([after for _, after in padding[2:]])
    layer.average_count_excludes_padding = False
    tensor = make.output(layer)
    if by is ReduceOperation.SUM:
        return make.mul(tensor, float(np.prod(sizes)))
    return make.sub(0, tensor) if negative else tensor


# ---------------------------------------------------------------------- gradients of poolings


def _window_places(shape: Sequence[int], sizes: Sequence[int], strides: Sequence[int], padding: Sequence[Any]) -> Any:
    """The flat places of the elements of windows, [windows, elements], and whether they are in the tensor."""
    counts = [
        (length + sum(pad) - size) // stride + 1
        for length, size, stride, pad in zip(shape, sizes, strides, padding, strict=True)
    ]
    windows = np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), -1).reshape(-1, 1, len(shape))
    inside = np.stack(np.meshgrid(*map(np.arange, sizes), indexing="ij"), -1).reshape(1, -1, len(shape))
    places = windows * np.array(strides) + inside - np.array([pad[0] for pad in padding])
    valid = ((places >= 0) & (places < np.array(shape))).all(-1)
    clipped = np.clip(places, 0, np.array(shape) - 1)
    return np.ravel_multi_index(tuple(np.moveaxis(clipped, -1, 0)), tuple(shape)), valid, counts


def _extreme_places(x: Any, largest: bool, *window: Sequence[Any]) -> tuple[Any, Any]:
    """The flat place of the element that each window selects, and the numbers of windows along the axes."""
    places, valid, counts = _window_places(x.shape, *window)
    worst = np.asarray(-np.inf if largest else np.inf, x.dtype)
    rows = jnp.where(valid, jnp.take(x.reshape(-1), places, mode="clip"), worst)
    chosen = jnp.argmax(rows, 1) if largest else jnp.argmin(rows, 1)
    return jnp.take_along_axis(jnp.asarray(places), chosen[:, None], 1)[:, 0], counts


@defined("select_and_scatter_add")
def select_and_scatter_add(
    source: Any, x: Any, *, select_prim: Any, window_dimensions: Any, window_strides: Any, padding: Any
) -> Any:
    """The gradient of a maximum pooling: each number is added where the extreme of its window is."""
    at, _ = _extreme_places(x, select_prim.name == "ge", window_dimensions, window_strides, padding)
    flat = jnp.zeros(x.size, x.dtype).at[at].add(source.reshape(-1), mode="promise_in_bounds")
    return flat.reshape(x.shape)


@defined("select_and_gather_add")
def select_and_gather_add(
    tangents: Any, x: Any, *, select_prim: Any, window_dimensions: Any, window_strides: Any, padding: Any, **_: Any
) -> Any:
    """The tangent of a maximum pooling: of each window, the number where its extreme is."""
    at, counts = _extreme_places(x, select_prim.name == "ge", window_dimensions, window_strides, padding)
    return jnp.take(tangents.reshape(-1), at, mode="clip").reshape(counts)


refuse(
    "it selects by a function of its own; use the gradient of a maximum or minimum of windows",
    "select_and_scatter",
)  # fmt: skip
