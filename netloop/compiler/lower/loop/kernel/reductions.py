"""Reductions and products in a kernel, with the results of XLA."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.compiler.lower.loop.kernel.elements import same_axes, wide
from netloop.compiler.lower.loop.kernel.interpreter import KernelTrace, primitive
from netloop.compiler.lower.loop.kernel.jaxpr import BOOL, Equation, Refused
from netloop.compiler.lower.loop.kernel.lanes import AxisClasses
from netloop.compiler.lower.loop.kernel.values import i32, inside


def _reduced_axes(classes: AxisClasses, equation: Equation) -> None:
    operand, reduced = equation.inputs[0], equation.params["axes"]
    classes.cross(operand, *reduced)
    left = [axis for axis in range(len(operand.shape)) if axis not in reduced]
    for after, axis in enumerate(left):
        classes.unite(operand, axis, equation.outputs[0], after)


def _masked(kernel: KernelTrace, equation: Equation, value: Any, neutral: Any) -> Any:
    """A value with a neutral number past the end of the axes that are reduced."""
    mask = inside(kernel.axes(equation.inputs[0]), equation.params["axes"])
    return value if mask is None else jnp.where(mask, value, jnp.asarray(neutral, value.dtype))


@primitive("reduce_sum", axes=_reduced_axes)
def _sum(kernel: KernelTrace, equation: Equation, values: list[Any]) -> Sequence[Any]:
    value = _masked(kernel, equation, kernel.array(values[0]), 0)
    return [wide(lambda x: equation.primitive.bind(x, **equation.params), value)]


@primitive("reduce_max", "reduce_min", axes=_reduced_axes)
def _extreme(kernel: KernelTrace, equation: Equation, values: list[Any]) -> Sequence[Any]:
    value, axes = kernel.array(values[0]), equation.params["axes"]
    is_least, dtype = equation.name == "reduce_min", value.dtype
    value = value.astype(i32) if dtype == BOOL else value
    value = _masked(kernel, equation, value, _worst(value.dtype, is_least))
    result = wide(lambda x: (jnp.min if is_least else jnp.max)(x, axes), value)
    if jnp.issubdtype(dtype, jnp.floating):
        # Triton's maximum of NaN and a number is the number
        has_nan = jnp.max((value != value).astype(i32), axes) > 0
        result = jnp.where(has_nan, jnp.asarray(np.nan, dtype), result)
    return [result.astype(dtype)]


def _worst(dtype: Any, is_least: bool) -> Any:
    """The number that is no extreme of any others."""
    if jnp.issubdtype(dtype, jnp.floating):
        return np.inf if is_least else -np.inf
    return np.iinfo(dtype).max if is_least else np.iinfo(dtype).min


@primitive("reduce_or", "reduce_and", axes=_reduced_axes)
def _all_or_any(kernel: KernelTrace, equation: Equation, values: list[Any]) -> Sequence[Any]:
    value, is_and = kernel.array(values[0]), equation.name == "reduce_and"
    if value.dtype != BOOL:
        raise Refused(f"kernels have no {equation.name} of {value.dtype}")
    value = _masked(kernel, equation, value.astype(i32), int(is_and))
    return [(jnp.min if is_and else jnp.max)(value, equation.params["axes"]) > 0]


@primitive("argmax", "argmin", axes=_reduced_axes)
def _position(kernel: KernelTrace, equation: Equation, values: list[Any]) -> Sequence[Any]:
    """The first position of the extreme, or of the first NaN."""
    value, (axis,) = kernel.array(values[0]), equation.params["axes"]
    value = value.astype(i32) if value.dtype == BOOL else value
    is_least, is_float = equation.name == "argmin", jnp.issubdtype(value.dtype, jnp.floating)
    value = value.astype(np.float32) if is_float and value.dtype.itemsize == 2 else value
    value = _masked(kernel, equation, value, _worst(value.dtype, is_least))
    best = jnp.expand_dims((jnp.min if is_least else jnp.max)(value, axis), axis)
    length = i32(equation.inputs[0].shape[axis])
    place = lax.broadcasted_iota(i32, value.shape, axis)
    result = jnp.min(jnp.where((value == best) & (place < length), place, length), axis)
    if is_float:
        nan = jnp.min(jnp.where((value != value) & (place < length), place, length), axis)
        result = jnp.where(nan < length, nan, result)
    return [result.astype(equation.params["index_dtype"])]


def _cumulative_axes(classes: AxisClasses, equation: Equation) -> None:
    same_axes(classes, equation)
    classes.cross(equation.inputs[0], equation.params["axis"])


@primitive("cumsum", axes=_cumulative_axes)
def _cumsum(kernel: KernelTrace, equation: Equation, values: list[Any]) -> Sequence[Any]:
    if equation.params["reverse"]:
        raise Refused("kernels have no cumulative sum from the end")
    return [wide(lambda x: lax.cumsum(x, equation.params["axis"]), kernel.array(values[0]))]


# ---------------------------------------------------------------------------- products


def _product_axes(classes: AxisClasses, equation: Equation) -> None:
    (left, right), output = equation.inputs, equation.outputs[0]
    (summed, others), (batch, batch_others) = equation.params["dimension_numbers"]
    classes.cross(left, *summed)
    classes.cross(right, *others)
    for axis, other in zip(summed, others, strict=True):
        classes.unite(left, axis, right, other)
    for after, (axis, other) in enumerate(zip(batch, batch_others, strict=True)):
        classes.unite(left, axis, output, after)
        classes.unite(right, other, output, after)
    rows = [axis for axis in range(len(left.shape)) if axis not in (*summed, *batch)]
    columns = [axis for axis in range(len(right.shape)) if axis not in (*others, *batch_others)]
    for after, axis in enumerate(rows, len(batch)):
        classes.unite(left, axis, output, after)
    for after, axis in enumerate(columns, len(batch) + len(rows)):
        classes.unite(right, axis, output, after)


@primitive("dot_general", axes=_product_axes)
def _product(kernel: KernelTrace, equation: Equation, values: list[Any]) -> Sequence[Any]:
    """A product as sums of products: Triton's own takes sides of 16 rows and more, and rounds float32 for it."""
    (summed, others), (batch, batch_others) = equation.params["dimension_numbers"]
    output = equation.outputs[0]
    dtype = np.dtype(np.float32) if output.dtype.itemsize == 2 and output.dtype.kind not in "iu" else output.dtype
    left = _ordered(kernel, equation.inputs[0], values[0], batch, summed).astype(dtype)
    right = _ordered(kernel, equation.inputs[1], values[1], batch_others, others).astype(dtype)
    rows, columns = left.ndim - len(batch) - len(summed), right.ndim - len(batch) - len(summed)
    at_rows = len(batch) + rows
    left = left.reshape((*left.shape[:at_rows], *(1,) * columns, *left.shape[at_rows:]))
    right = right.reshape((*right.shape[: len(batch)], *(1,) * rows, *right.shape[len(batch) :]))
    axes = tuple(range(left.ndim - len(summed), left.ndim))
    return [jnp.sum(left * right, axes, dtype=dtype).astype(output.dtype)]


def terms(kernel: KernelTrace, equation: Equation) -> int:
    """The terms of all sums of a product."""
    (summed, _), _ = equation.params["dimension_numbers"]
    block = kernel.block(equation.inputs[0])
    return math.prod(kernel.block(equation.outputs[0])) * math.prod(block[axis] for axis in summed)


def _ordered(kernel: KernelTrace, operand: Any, value: Any, batch: Sequence[int], summed: Sequence[int]) -> Any:
    """An operand with the axes of its batch first, and those of the sum last, with zeros past the end of these."""
    value, mask = kernel.array(value), inside(kernel.axes(operand), summed)
    value = value if mask is None else jnp.where(mask, value, jnp.zeros((), value.dtype))
    free = [axis for axis in range(value.ndim) if axis not in (*batch, *summed)]
    return lax.transpose(value, [*batch, *free, *summed])
