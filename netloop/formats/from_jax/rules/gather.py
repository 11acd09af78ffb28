"""Gathers and scatters by index."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.lax import GatherScatterMode

from netloop.formats.from_jax.element_types import is_complex
from netloop.formats.from_jax.indices import Indices, Windows
from netloop.formats.from_jax.rules import EquationCall, complex_primitive, primitive
from netloop.formats.from_jax.rules.pointwise.complex_numbers import product
from netloop.formats.from_jax.rules.reduce import neutral
from netloop.formats.shared.word_tables import SCATTER_REDUCTIONS
from netloop.model.formulas import Length
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.enums import ReduceOperation, SampleMode


def _fill_value(call: EquationCall) -> Any:
    """The value that a gather reads out of bounds."""
    result, dtype = call.params["fill_value"], call.dtype
    if is_complex(call.result):
        number = complex(np.nan if result is None else result)
        return number.real, number.imag
    if result is not None:
        return result
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max
    return dtype.kind == "b" or np.nan


@primitive("gather")
def gather(call: EquationCall, x: ITensor, indices: ITensor) -> ITensor:
    """The windows of the tensor at some positions; out of bounds clipped, or filled with NaN."""
    numbers, sizes = call.params["dimension_numbers"], call.params["slice_sizes"]
    windows = Windows.of_gather(call, numbers, sizes)
    results = Indices(call, windows, indices, call.params["mode"] is not GatherScatterMode.PROMISE_IN_BOUNDS)
    result, axes = _gathered(call, x, results)
    wanted = _result_axes(numbers, windows, results.batch)
    order = [axes.index(axis) for axis in wanted]
    result = call.make.transpose(result, [*order, *range(len(order), result.type.rank)])
    if call.params["mode"] is not GatherScatterMode.FILL_OR_DROP or results.valid is None:
        return result
    missing = [axis for axis in range(result.type.rank) if axis >= len(wanted) or wanted[axis][0] == "window"]
    valid = call.make.expand_dims(results.valid, missing)
    return call.make.where(valid, result, call.make.constant(np.asarray(_fill_value(call), result.type.dtype)))


Axis = tuple[str, int]
"""An axis of a result: of the indices, ``batch``, or of the operand, ``window``."""


def _gathered(call: EquationCall, x: ITensor, indices: Indices) -> tuple[ITensor, list[Axis]]:
    """The windows, and the kinds of their axes."""
    make, windows = call.make, indices.windows
    batch: list[Axis] = [("batch", axis) for axis in range(indices.batch)]
    inner: list[Axis] = [("window", axis) for axis in windows.partial]
    if not windows.indexed:
        lengths = [make.length(indices.starts, axis) for axis in range(indices.batch)]
        wide = call.facts.broadcast(x, [*lengths, *(make.length(x, axis) for axis in range(x.type.rank))])
        return wide, [*batch, *(("window", axis) for axis in range(windows.rank))]
    if len(windows.indexed) == 1:
        axis = windows.indexed[0]
        tensor = make.gather(x, indices.along(axis), axis)
        before, after = (
            [("window", number) for number in span] for span in (range(axis), range(axis + 1, windows.rank))
        )
        return tensor, [*before, *batch, *inner, *after]
    element = indices.element_axis()
    if element is not None:
        return make.gather_elements(x, indices.along(element), element), batch
    whole = [axis for axis in range(x.type.rank) if axis not in windows.indexed]
    tensor = make.gather_nd(make.transpose(x, [*windows.indexed, *whole]), indices.positions())
    return tensor, [*batch, *inner, *(("window", axis) for axis in whole if axis < windows.rank)]


def _result_axes(numbers: Any, windows: Windows, batch: int) -> list[Axis]:
    offsets = [int(dim) for dim in numbers.offset_dims]
    inside = dict(zip(offsets, windows.kept, strict=True))
    outside = iter(range(batch))
    rank = batch + len(offsets)
    return [("window", inside[axis]) if axis in inside else ("batch", next(outside)) for axis in range(rank)]


@primitive(*SCATTER_REDUCTIONS.jax.read)
def scatter(call: EquationCall, x: ITensor, indices: ITensor, updates: ITensor) -> ITensor:
    """Updates written into windows, or combined with them; those out of bounds clipped, or dropped."""
    name = call.name
    numbers, by = call.params["dimension_numbers"], SCATTER_REDUCTIONS.jax.read[name]
    jaxpr = call.params.get("update_jaxpr")
    plain = name != "scatter" or jaxpr is None or not jaxpr.eqns
    require(plain, "a scatter with a function of its own", fix="use one of at[].set, add, mul, min and max")
    windows = Windows.of_scatter(call, numbers, updates)
    result = Indices(call, windows, indices, call.params["mode"] is not GatherScatterMode.PROMISE_IN_BOUNDS)
    updates = call.make.transpose(updates, _update_order(numbers, windows, result.batch, updates.type.rank))
    if name == "scatter-sub":
        updates = call.make.sub(0, updates)
    drops = call.params["mode"] is GatherScatterMode.FILL_OR_DROP
    return written(call, x, result, updates, by, drops)


def _update_order(numbers: Any, windows: Windows, batch: int, rank: int) -> list[int]:
    """The axes of updates: those of the indices, of indexed windows, and of whole ones."""
    inside = dict(zip(windows.kept, (int(dim) for dim in numbers.update_window_dims), strict=True))
    outside = [axis for axis in range(batch + len(inside)) if axis not in inside.values()]
    whole = [axis for axis in range(windows.rank) if axis not in windows.indexed]
    listed = [*outside, *(inside[axis] for axis in windows.partial), *(inside[axis] for axis in whole)]
    return [*listed, *range(len(listed), rank)]


def written(
    call: EquationCall, x: ITensor, indices: Indices, updates: ITensor, by: ReduceOperation, drops: bool = False
) -> ITensor:
    """``x`` with updates [batch.., indexed window axes.., whole axes..] written at indices, or combined by ``by``."""
    make, windows = call.make, indices.windows
    is_bool = x.type.is_bool and by is not ReduceOperation.NONE
    if is_bool:
        x, updates = make.cast(x, np.int32), make.cast(updates, np.int32)
    whole = [axis for axis in range(x.type.rank) if axis not in windows.indexed]
    order = [*windows.indexed, *whole]
    turned, positions = make.transpose(x, order), indices.positions()
    if drops and indices.valid is not None:
        valid = make.expand_dims(indices.valid, range(indices.batch, updates.type.rank))
        if by is not ReduceOperation.NONE:
            updates = make.where(valid, updates, make.constant(neutral(by, x.type.dtype)))
        elif indices.is_single:
            updates = make.where(valid, updates, make.gather_nd(turned, positions))
        else:
            return make.transpose(_dropping(call, turned, indices, updates), np.argsort(order).tolist())
    tensor = make.scatter_nd(turned, positions, updates, by)
    tensor = make.transpose(tensor, np.argsort(order).tolist())
    return make.cast(tensor, np.bool_) if is_bool else tensor


def _dropping(call: EquationCall, x: ITensor, indices: Indices, updates: ITensor) -> ITensor:
    """Updates out of bounds go to a row more, which is cut off again."""
    make = call.make
    rows: list[Length] = [make.length(x, axis) for axis in range(x.type.rank)]
    spare = make.slice(x, [0], [make.add(rows[0], 1) if isinstance(rows[0], ITensor) else rows[0] + 1], axes=[0],
                       outside=SampleMode.FILL)  # fmt: skip
    positions = indices.positions()
    assert indices.valid is not None
    valid = make.expand_dims(indices.valid, range(indices.batch, positions.type.rank))
    last = make.list_tensor([rows[0], *[0] * (len(indices.windows.indexed) - 1)])
    positions = make.where(valid, positions, make.cast(last, positions.type.dtype))
    tensor = make.scatter_nd(spare, positions, updates)
    return make.slice(tensor, [0], [rows[0]], axes=[0])


@complex_primitive("scatter", "scatter-add")
def scatter_complex(call: EquationCall, *operands: ITensor) -> list[ITensor]:
    """An array with other elements, or with some added to its own, at places."""
    params = call.params
    write = lax.scatter if call.name == "scatter" else lax.scatter_add
    names = ("dimension_numbers", "indices_are_sorted", "unique_indices", "mode")

    def of_parts(x: Any, indices: Any, updates: Any) -> Any:
        values = {name: params[name] for name in names}
        return jnp.stack([write(x[..., part], indices, updates[..., part], **values) for part in range(2)], -1)

    return call.define(of_parts, *operands)


@complex_primitive("scatter-mul")
def scatter_complex_product(call: EquationCall, *operands: ITensor) -> list[ITensor]:
    """An array with some elements multiplied, at places; index by index, as a place may occur more than once."""
    params = call.params
    numbers, mode = params["dimension_numbers"], params["mode"]

    def of_parts(x: Any, indices: Any, updates: Any) -> Any:
        batch = [axis for axis in range(updates.ndim - 1) if axis not in numbers.update_window_dims]
        indices, single = _without_batching(numbers, indices)
        if params["unique_indices"] or all(updates.shape[axis] == 1 for axis in batch):
            window = [axis for axis in range(updates.ndim) if axis not in batch]
            together = single._replace(update_window_dims=numbers.update_window_dims)
            return _multiplied(x, indices, updates, together, [updates.shape[axis] for axis in window[:-1]], mode)
        rows = jnp.moveaxis(updates, batch, range(len(batch)))
        window = rows.shape[len(batch) :]

        def step(x: Any, row: Any) -> tuple[Any, None]:
            index, update = row
            return _multiplied(x, index, update, single, window[:-1], mode), None

        return lax.scan(step, x, (indices.reshape(-1, indices.shape[-1]), rows.reshape(-1, *window)))[0]

    return call.define(of_parts, *operands)


def _without_batching(numbers: lax.ScatterDimensionNumbers, indices: Any) -> tuple[Any, lax.ScatterDimensionNumbers]:
    """Indices that also say the position along batching axes, and the numbers of a scatter of one of them."""
    places = [lax.broadcasted_iota(indices.dtype, (*indices.shape[:-1], 1), axis)
              for axis in numbers.scatter_indices_batching_dims]  # fmt: skip
    window = range(len(numbers.update_window_dims))
    inserted = sorted((*numbers.inserted_window_dims, *numbers.operand_batching_dims))
    scattered = (*numbers.operand_batching_dims, *numbers.scatter_dims_to_operand_dims)
    single = lax.ScatterDimensionNumbers(tuple(window), tuple(inserted), scattered)
    return jnp.concatenate([*places, indices], -1), single


def _multiplied(
    x: Any, indices: Any, updates: Any, numbers: lax.ScatterDimensionNumbers, window: Sequence[int], mode: Any
) -> Any:
    """``x`` with windows at different places multiplied; all have their parts along a last axis."""
    kept = iter(window)
    sizes = [1 if axis in numbers.inserted_window_dims else next(kept) for axis in range(x.ndim - 1)]
    reading = lax.GatherDimensionNumbers(
        tuple(numbers.update_window_dims),
        tuple(numbers.inserted_window_dims),
        tuple(numbers.scatter_dims_to_operand_dims),
    )
    a, b = (lax.gather(x[..., part], indices, reading, sizes, mode=mode) for part in range(2))
    written_parts = [
        lax.scatter(x[..., number], indices, part, numbers, unique_indices=True, mode=mode)
        for number, part in enumerate(product(a, b, updates[..., 0], updates[..., 1]))
    ]
    return jnp.stack(written_parts, -1)
