"""Iterators: one slice of a tensor for each iteration."""

import jax
import jax.numpy as jnp
from jax import lax

from netloop.compiler.lower.frame import Frame, first_error
from netloop.compiler.lower.loop.rows import in_bytes, of_type
from netloop.compiler.lower.lowering import Lowering
from netloop.model.layers.index_types import narrow_indices
from netloop.model.layers.loop import IIteratorLayer
from netloop.values.types import normal_axis


def all_slices(lowering: Lowering, layer: IIteratorLayer, trips: int, frame: Frame) -> jax.Array:
    """The slices of an iterator for ``trips`` iterations, in their order, along axis 0: the input of a scan."""
    array = lowering.array(layer.tensor(0), frame)
    rows = jnp.moveaxis(array, layer.axis, 0)[:trips]
    return jnp.flip(rows, 0) if layer.reverse else rows


def lower_iterator(lowering: Lowering, layer: IIteratorLayer, frame: Frame) -> None:
    """Add the slice of the present iteration to the frame, unless the scan has done so."""
    output = layer.outputs[0]
    frame.poison(layer.outputs, frame.error_flag(layer.inputs))
    if output in frame.values:
        return
    array = lowering.array(layer.tensor(0), frame)
    axis = normal_axis(layer.axis, array.ndim)
    position, length = frame.trips[layer.loop], array.shape[axis]
    if layer.trips is not None:
        count = jnp.asarray(lowering.read(layer.trips, frame), jnp.int64)
        position = jnp.maximum(count, 0) - 1 - position
    # one iteration past the last even an iterator that stays inside may be past the end
    if layer.loop in frame.ended or not lowering.facts.stays_inside(layer):
        finding = layer.finding("NL601", *layer.past_the_end(length))
        flag = lowering.errors.flag((position < 0) | (position >= length), finding)
        frame.poison(layer.outputs, first_error(frame.error_flag([output, layer.trips]), flag))
    if length == 0:
        frame.values[output] = jnp.zeros(lowering.types[output].shape, array.dtype)
    else:
        # a position past the end is clamped; the value is poisoned then
        index = narrow_indices(position, length - 1)
        row = lax.dynamic_index_in_dim(in_bytes(array, lowering.platform), index, axis, keepdims=False)
        frame.values[output] = of_type(row, array.dtype)
