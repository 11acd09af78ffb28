"""Parts of arrays: slices, rows, indices, concatenation and padding.

A part of an array in memory is another view of it. Triton has no such operations for arrays in registers: there each
element of the result is a sum, of one number and of zeros, which is exact for bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.compiler.lower.loop.kernel import triton
from netloop.compiler.lower.loop.kernel.interpreter import KernelTrace, primitive
from netloop.compiler.lower.loop.kernel.jaxpr import BOOL, Atom, Equation, Refused
from netloop.compiler.lower.loop.kernel.lanes import AxisClasses
from netloop.compiler.lower.loop.kernel.values import BlockAxis, View, WrittenRows, both, contiguous, i32, inside

SELECTED = 1 << 12
"""The most products of elements before and after of a selection in registers."""


def taken(value: Any, axes: Sequence[BlockAxis], axis: int, after: BlockAxis, place: Callable[[Any], Any]) -> Any:
    """The elements of an array at some places along an axis; zeros where there is none.

    Args:
        value: the array, in registers.
        axes: its axes.
        axis: the axis.
        after: the axis of the result.
        place: the places, given the positions of the result.
    """
    before = value.shape[axis]
    if before == after.block == 1:
        return value
    if value.size * after.block > SELECTED:
        raise Refused(f"it selects {after.length} of {axes[axis].length} in an array of {value.size} elements")
    block = (*value.shape[: axis + 1], after.block, *value.shape[axis + 1 :])
    positions = lax.broadcasted_iota(i32, block, axis)
    wanted = place(lax.broadcasted_iota(i32, block, axis + 1))
    bits = _bits(value)
    spread = jnp.broadcast_to(bits.reshape((*value.shape[: axis + 1], 1, *value.shape[axis + 1 :])), block)
    chosen = jnp.where(positions == wanted, spread, jnp.zeros((), bits.dtype))
    return _of_bits(jnp.sum(chosen, axis, dtype=bits.dtype), value.dtype)


def selected(value: Any, axes: Sequence[BlockAxis], wanted: Any) -> Any:
    """The elements of an array at some positions of its numbers in order; zeros where there is none.

    Args:
        value: the array, in registers.
        axes: its axes.
        wanted: the position of each element of the result.
    """
    if value.size * wanted.size > SELECTED:
        raise Refused(f"it selects {wanted.size} of the elements of an array of {value.size}")
    block, places = value.shape, jnp.zeros(value.shape, i32)
    for axis, stride in enumerate(contiguous([axis.length for axis in axes])):
        places = places + lax.broadcasted_iota(i32, block, axis) * i32(stride)
    if (mask := inside(axes, range(len(axes)))) is not None:
        places = jnp.where(mask, places, i32(-1))
    spread = (*block, *(1,) * wanted.ndim)
    bits = _bits(value)
    chosen = jnp.where(places.reshape(spread) == wanted, bits.reshape(spread), jnp.zeros((), bits.dtype))
    return _of_bits(jnp.sum(chosen, tuple(range(value.ndim)), dtype=bits.dtype), value.dtype)


def put(value: Any, row: Any, position: Any) -> Any:
    """An array in registers with a row at a position of its first axis."""
    row = jnp.asarray(row, value.dtype).reshape((1, *row.shape))
    places = lax.broadcasted_iota(i32, value.shape, 0)
    return jnp.where(places == position, jnp.broadcast_to(row, value.shape), value)


def _bits(value: Any) -> Any:
    """The bits of numbers as integers that Triton adds up."""
    size = value.dtype.itemsize
    if jnp.issubdtype(value.dtype, jnp.floating):
        value = lax.bitcast_convert_type(value, {2: np.int16, 4: np.int32, 8: np.int64}[size])
    return value.astype(np.int32) if size < 4 else value


def _of_bits(bits: Any, dtype: Any) -> Any:
    if jnp.issubdtype(dtype, jnp.floating):
        narrow = bits.astype(np.int16) if dtype.itemsize == 2 else bits
        return lax.bitcast_convert_type(narrow, dtype)
    return bits.astype(dtype)


# ---------------------------------------------------------------------------- slices


def _unite_part(classes: AxisClasses, whole: Atom, part: Atom) -> None:
    """Unite the axes of which a part has all elements; the others are read at positions."""
    for axis, (before, after) in enumerate(zip(whole.shape, part.shape, strict=True)):
        if before == after:
            classes.unite(whole, axis, part, axis)
        else:
            classes.cross(whole, axis)
            classes.cross(part, axis)


def _part_axes(classes: AxisClasses, equation: Equation) -> None:
    _unite_part(classes, equation.inputs[0], equation.outputs[0])


def starts(kernel: KernelTrace, values: Sequence[Any], whole: Sequence[int], part: Sequence[int]) -> list[Any]:
    """The positions at which a part begins, which XLA clamps so that it is inside."""
    lengths = zip(values, whole, part, strict=True)
    return [
        i32(0) if before == after else jnp.clip(kernel.array(value), 0, before - after).astype(i32)
        for value, before, after in lengths
    ]


def _part(kernel: KernelTrace, equation: Equation, value: Any, begins: Sequence[Any], steps: Sequence[int]) -> Any:
    """The part of an array that begins at some positions."""
    axes, wanted = kernel.axes(equation.inputs[0]), kernel.axes(equation.outputs[0])
    if isinstance(value, View):
        return value.at(begins, wanted, steps)
    value = kernel.array(value)
    for axis, (begin, step, after) in enumerate(zip(begins, steps, wanted, strict=True)):
        if axes[axis].length != after.length:
            value = taken(value, axes, axis, after, lambda place, begin=begin, step=step: place * i32(step) + begin)
    return value


@primitive("dynamic_slice", axes=_part_axes)
def _dynamic_slice(kernel: KernelTrace, equation: Equation, values: list[Any]) -> Sequence[Any]:
    sizes = equation.outputs[0].shape
    begins = starts(kernel, values[1:], equation.inputs[0].shape, sizes)
    return [_part(kernel, equation, values[0], begins, [1] * len(sizes))]


@primitive("slice", axes=_part_axes)
def _slice(kernel: KernelTrace, equation: Equation, values: list[Any]) -> Sequence[Any]:
    begins = equation.params["start_indices"]
    return [_part(kernel, equation, values[0], list(map(i32, begins)), equation.params["strides"] or [1] * len(begins))]


def _update_axes(classes: AxisClasses, equation: Equation) -> None:
    whole, part = equation.inputs[:2]
    classes.unite_all(whole, equation.outputs[0])
    _unite_part(classes, whole, part)


@primitive("dynamic_update_slice", axes=_update_axes)
def _dynamic_update_slice(kernel: KernelTrace, equation: Equation, values: list[Any]) -> Sequence[Any]:
    whole, part = equation.inputs[:2]
    axes, begins = kernel.axes(part), starts(kernel, values[2:], whole.shape, part.shape)
    if isinstance(values[0], WrittenRows):
        values[0].view.at(begins, axes).store(kernel.array(values[1]))
        return [values[0]]
    value, update, hit = kernel.array(values[0]), kernel.array(values[1]), None
    wanted = kernel.axes(whole)
    for axis, begin in enumerate(begins):
        if axes[axis].length == wanted[axis].length:
            continue
        place = lax.broadcasted_iota(i32, value.shape, axis) - begin
        hit = both(hit, (place >= 0) & (place < i32(axes[axis].length)))
        if axes[axis].length > 1:
            update = taken(update, axes, axis, wanted[axis], lambda place, begin=begin: place - begin)
    update = jnp.broadcast_to(update, value.shape)
    return [update if hit is None else jnp.where(hit, update, value)]


# ---------------------------------------------------------------------------- moves along an axis


def _joined_axes(classes: AxisClasses, equation: Equation) -> None:
    joined, result = equation.params["dimension"], equation.outputs[0]
    classes.cross(result, joined)
    for operand in equation.inputs:
        classes.cross(operand, joined)
        for axis in range(len(operand.shape)):
            if axis != joined:
                classes.unite(operand, axis, result, axis)


@primitive("concatenate", axes=_joined_axes)
def _concatenate(kernel: KernelTrace, equation: Equation, values: list[Any]) -> Sequence[Any]:
    axis, output = equation.params["dimension"], equation.outputs[0]
    wanted, offset = kernel.axes(output), 0
    result = jnp.zeros(kernel.block(output), output.dtype)
    places = lax.broadcasted_iota(i32, result.shape, axis)
    for operand, value in zip(equation.inputs, values, strict=True):
        length = operand.shape[axis]
        piece = taken(
            kernel.array(value), kernel.axes(operand), axis, wanted[axis], lambda place, o=offset: place - i32(o)
        )
        hit = (places >= i32(offset)) & (places < i32(offset + length))
        result = jnp.where(hit, jnp.broadcast_to(piece, result.shape), result)
        offset += length
    return [result]


def _stacked_axes(classes: AxisClasses, equation: Equation) -> None:
    axis, result = equation.params["axis"], equation.outputs[0]
    classes.cross(result, axis)
    for operand in equation.inputs:
        for before in range(len(operand.shape)):
            classes.unite(operand, before, result, before + (before >= axis))


@primitive("stack", axes=_stacked_axes)
def _stack(kernel: KernelTrace, equation: Equation, values: list[Any]) -> Sequence[Any]:
    axis, output = equation.params["axis"], equation.outputs[0]
    result = jnp.zeros(kernel.block(output), output.dtype)
    places = lax.broadcasted_iota(i32, result.shape, axis)
    for number, value in enumerate(values):
        piece = jnp.expand_dims(kernel.array(value), axis)
        result = jnp.where(places == i32(number), jnp.broadcast_to(piece, result.shape), result)
    return [result]


def _moved_axes(classes: AxisClasses, equation: Equation) -> None:
    whole, result = equation.inputs[0], equation.outputs[0]
    moved = equation.params.get("dimensions")
    for axis in range(len(whole.shape)):
        is_moved = axis in moved if moved is not None else any(equation.params["padding_config"][axis])
        if is_moved:
            classes.cross(whole, axis)
            classes.cross(result, axis)
        else:
            classes.unite(whole, axis, result, axis)


@primitive("rev", axes=_moved_axes)
def _rev(kernel: KernelTrace, equation: Equation, values: list[Any]) -> Sequence[Any]:
    axes, value, moved = kernel.axes(equation.inputs[0]), values[0], equation.params["dimensions"]
    if isinstance(value, View):
        begins = [i32(axis.length - 1 if number in moved else 0) for number, axis in enumerate(axes)]
        steps = [-1 if number in moved else 1 for number in range(len(axes))]
        return [value.at(begins, kernel.axes(equation.outputs[0]), steps)]
    value = kernel.array(value)
    for axis in moved:
        last = i32(axes[axis].length - 1)
        value = taken(value, axes, axis, axes[axis], lambda place, last=last: last - place)
    return [value]


@primitive("pad", axes=_moved_axes)
def _pad(kernel: KernelTrace, equation: Equation, values: list[Any]) -> Sequence[Any]:
    axes, output = kernel.axes(equation.inputs[0]), equation.outputs[0]
    value, padding, wanted, hit = kernel.array(values[0]), kernel.array(values[1]), kernel.axes(output), None
    for axis, (low, high, between) in enumerate(equation.params["padding_config"]):
        if between:
            raise Refused("it pads between elements")
        if low or high:
            value = taken(value, axes, axis, wanted[axis], lambda place, low=low: place - i32(low))
    block = kernel.block(output)
    for axis, (low, high, _) in enumerate(equation.params["padding_config"]):
        if low or high:
            place = lax.broadcasted_iota(i32, block, axis) - i32(low)
            hit = both(hit, (place >= 0) & (place < i32(axes[axis].length)))
    return [value if hit is None else jnp.where(hit, jnp.broadcast_to(value, block), jnp.broadcast_to(padding, block))]


# ---------------------------------------------------------------------------- gather


def _gather_axes(classes: AxisClasses, equation: Equation) -> None:
    numbers, (whole, indices), output = equation.params["dimension_numbers"], equation.inputs, equation.outputs[0]
    classes.cross_all([whole])
    classes.cross(indices, len(indices.shape) - 1)
    classes.cross(output, *numbers.offset_dims)
    batch = [axis for axis in range(len(output.shape)) if axis not in numbers.offset_dims]
    for axis, after in enumerate(batch):
        classes.unite(indices, axis, output, after)


@primitive("gather", axes=_gather_axes)
def _gather(kernel: KernelTrace, equation: Equation, values: list[Any]) -> Sequence[Any]:
    """Parts of an array, at positions that are XLA's: clamped, or filled where they are none."""
    numbers, output = equation.params["dimension_numbers"], equation.outputs[0]
    if numbers.operand_batching_dims:
        raise Refused("it gathers from each row of a batch")
    whole = values[0] if isinstance(values[0], View) else None
    block, indices, axes = kernel.block(output), kernel.array(values[1]), kernel.axes(equation.inputs[0])
    strides = contiguous(equation.inputs[0].shape) if whole is None else whole.strides
    index, valid = jnp.full(block, 0 if whole is None else whole.offset, i32), None
    for axis, stride in enumerate(strides):
        place, fits = _places(equation, axis, indices, block)
        index, valid = index + place * i32(stride), both(valid, fits)
    if whole is None:
        result = selected(kernel.array(values[0]), axes, index)
    else:
        mask = inside(kernel.axes(output), range(len(block)))
        result = triton.load(whole.reference, index, both(mask, valid))
    return [result if valid is None else jnp.where(valid, result, _fill(equation))]


def _places(equation: Equation, axis: int, indices: Any, block: tuple[int, ...]) -> tuple[Any, Any]:
    """The position along an axis of the whole of each element, and where the index is one; None if it is clamped."""
    numbers, sizes = equation.params["dimension_numbers"], equation.params["slice_sizes"]
    whole, output = equation.inputs[0].shape, equation.outputs[0].shape
    batch = [place for place in range(len(output)) if place not in numbers.offset_dims]
    place, valid = jnp.zeros(block, i32), None
    if axis in numbers.start_index_map:
        last, most = indices.ndim - 1, whole[axis] - sizes[axis]
        component = i32(numbers.start_index_map.index(axis))
        hit = lax.broadcasted_iota(i32, indices.shape, last) == component
        start = jnp.sum(jnp.where(hit, indices, jnp.zeros((), indices.dtype)), last, dtype=indices.dtype)
        spread = (
            (lambda value: lax.broadcast_in_dim(value, block, batch))
            if batch
            else (lambda value: jnp.full(block, value))
        )
        if "FILL" in str(equation.params["mode"]):
            valid = spread((start >= 0) & (start <= most))
        place = spread(jnp.clip(start, 0, most).astype(i32))
    kept = [place for place in range(len(whole)) if place not in numbers.collapsed_slice_dims]
    if axis in kept and sizes[axis] > 1:
        place = place + lax.broadcasted_iota(i32, block, numbers.offset_dims[kept.index(axis)])
    return place, valid


def _fill(equation: Equation) -> Any:
    """The number of an element whose index is none."""
    fill, dtype = equation.params["fill_value"], equation.outputs[0].dtype
    if fill is None:
        is_float, is_signed = (jnp.issubdtype(dtype, kind) for kind in (jnp.inexact, jnp.signedinteger))
        limits = None if is_float or dtype == BOOL else np.iinfo(dtype)
        fill = np.nan if is_float else True if limits is None else limits.min if is_signed else limits.max
    return jnp.asarray(fill, dtype)
