"""Primitives that change the shape of an array, and make one of a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from netloop.compiler.lower.loop.kernel.interpreter import KernelTrace, primitive
from netloop.compiler.lower.loop.kernel.jaxpr import BOOL, Equation
from netloop.compiler.lower.loop.kernel.lanes import AxisClasses
from netloop.compiler.lower.loop.kernel.selection import selected
from netloop.compiler.lower.loop.kernel.values import Numbers, View, contiguous, i32


def _broadcast_axes(classes: AxisClasses, equation: Equation) -> None:
    for axis, after in enumerate(equation.params["broadcast_dimensions"]):
        classes.unite(equation.inputs[0], axis, equation.outputs[0], after)


@primitive("broadcast_in_dim", axes=_broadcast_axes)
def _broadcast_in_dim(kernel: KernelTrace, equation: Equation, values: list[Any]) -> Sequence[Any]:
    axes = equation.params["broadcast_dimensions"]
    return [lax.broadcast_in_dim(kernel.array(values[0]), kernel.block(equation.outputs[0]), axes)]


def _pairs(before: Sequence[int], after: Sequence[int]) -> list[tuple[int, int]] | None:
    """The equal axes of a reshape that only adds and drops axes of length one; None for another one."""
    first = [axis for axis, length in enumerate(before) if length != 1]
    second = [axis for axis, length in enumerate(after) if length != 1]
    is_same = [before[axis] for axis in first] == [after[axis] for axis in second]
    return list(zip(first, second, strict=True)) if is_same else None


def _reshape_axes(classes: AxisClasses, equation: Equation) -> None:
    before, after = equation.inputs[0], equation.outputs[0]
    pairs = _pairs(before.shape, after.shape)
    if pairs is None:
        classes.cross_all([before, after])
    for axis, other in pairs or ():
        classes.unite(before, axis, after, other)


@primitive("reshape", "squeeze", "expand_dims", axes=_reshape_axes)
def _reshape(kernel: KernelTrace, equation: Equation, values: list[Any]) -> Sequence[Any]:
    before, after, value = equation.inputs[0], equation.outputs[0], values[0]
    pairs = _pairs(before.shape, after.shape)
    if isinstance(value, View):
        # loaded in its new shape: in registers a reshape would move numbers between threads
        if pairs is not None:
            strides = {other: value.strides[axis] for axis, other in pairs}
            places = tuple(strides.get(axis, 0) for axis in range(len(after.shape)))
            return [View(value.reference, kernel.axes(after), places, value.offset)]
        if value.strides == contiguous(before.shape):
            return [View(value.reference, kernel.axes(after), contiguous(after.shape), value.offset)]
    array, block = kernel.array(value), kernel.block(after)
    if pairs is None and (kernel.block(before) != before.shape or block != after.shape):
        wanted = jnp.zeros(block, i32)
        for axis, stride in enumerate(contiguous(after.shape)):
            wanted = wanted + lax.broadcasted_iota(i32, block, axis) * i32(stride)
        return [selected(array, kernel.axes(before), wanted)]
    return [_scalar(array) if not block and array.shape else array.reshape(block)]


def _scalar(array: Any) -> Any:
    """The number of an array of one number."""
    # Triton has no reshape of bools to a number
    return jnp.sum(array.astype(jnp.int32)) != 0 if array.dtype == BOOL else array.reshape(())


def _transpose_axes(classes: AxisClasses, equation: Equation) -> None:
    for after, axis in enumerate(equation.params["permutation"]):
        classes.unite(equation.inputs[0], axis, equation.outputs[0], after)


@primitive("transpose", axes=_transpose_axes)
def _transpose(kernel: KernelTrace, equation: Equation, values: list[Any]) -> Sequence[Any]:
    order, value = equation.params["permutation"], values[0]
    if isinstance(value, View):
        strides = tuple(value.strides[axis] for axis in order)
        return [View(value.reference, kernel.axes(equation.outputs[0]), strides, value.offset)]
    return [lax.transpose(kernel.array(value), order)]


def _no_axes(classes: AxisClasses, equation: Equation) -> None:
    """Unite nothing: each program counts from its own first lane."""


@primitive("iota", axes=_no_axes)
def _iota(kernel: KernelTrace, equation: Equation, values: list[Any]) -> Sequence[Any]:
    output, axis = equation.outputs[0], equation.params["dimension"]
    axes = kernel.axes(output)
    if len(axes) == 1:
        return [Numbers(axes[0], output.dtype)]
    return [axes[axis].positions(kernel.block(output), axis).astype(output.dtype)]
