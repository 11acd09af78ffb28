"""Loop outputs: buffers for the rows of stacked outputs, and the values that leave a loop."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.compiler.lower.frame import Frame, first_error
from netloop.compiler.lower.loop.rows import in_bytes, of_type
from netloop.compiler.lower.loop.state import Carry, LoopState
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.index_types import narrow_indices
from netloop.model.layers.loop import ILoopOutputLayer
from netloop.model.layers.rearrange import unfolded
from netloop.values.enums import LoopOutput
from netloop.values.types import normal_axis


def empty_buffers(state: LoopState) -> list[jax.Array]:
    """A buffer of zeros for each stacked output of a while loop, with its rows along axis 0."""
    rows = [state.lowering.types[row] for row in state.step.rows]
    lengths = [state.lowering.facts.length(output) for output in state.step.stacked]
    zeros = [lax.full((length, *row.shape), _zero(row.dtype)) for length, row in zip(lengths, rows, strict=True)]
    return [in_bytes(buffer, state.lowering.platform) for buffer in zeros]


def write_rows(buffers: Sequence[jax.Array], rows: Sequence[jax.Array], trip: Any) -> list[jax.Array]:
    """The buffers with the rows of an iteration, in their form, which XLA writes in place."""
    # past the end of a buffer the last row is overwritten; the output is poisoned then
    return [_with_row(buffer, row, trip) if len(buffer) else buffer for buffer, row in zip(buffers, rows, strict=True)]


def _with_row(buffer: jax.Array, row: jax.Array, trip: Any) -> jax.Array:
    return lax.dynamic_update_index_in_dim(buffer, row, narrow_indices(trip, len(buffer) - 1), 0)


def leave(state: LoopState, end: Carry) -> None:
    """Add the outputs of a loop to the frame around it, given its carry after the last iteration."""
    frame = state.frame
    if state.step.has_assertions:
        frame.status = first_error(end.errors.status, end.errors.limits)
    ended = _ended(state, end)
    for layer in state.step.outputs:
        result = _stack(state, layer, end) if layer.stacks else _last(state, layer, end, ended)
        frame.values[layer.outputs[0]], flag = result
        frame.poison(layer.outputs, flag)


def _ended(state: LoopState, end: Carry) -> Frame:
    """The frame after the last iteration, in which what the LAST_VALUE outputs need has run."""
    inside = state.unpack(end, jnp.int64(end.trip))
    inside.ended.add(state.step.loop)
    inside.is_iteration = False
    wanted = [output.tensor(0) for output in state.step.outputs if not output.stacks]
    state.lowering.run(state.step.body.needed(wanted), inside)
    return inside


def _stack(state: LoopState, layer: ILoopOutputLayer, end: Carry) -> tuple[Any, Any]:
    """The value of a stacked output, and its error flag."""
    facts, flag = state.lowering.facts, end.errors.limits
    length, position = facts.length(layer), state.step.stacked.index(layer)
    if not facts.has_room(layer):
        finding = layer.finding("NL601", *layer.too_short(length))
        flag = first_error(flag, state.lowering.errors.flag(end.trip > length, finding))
    rows = of_type(end.buffers[position], state.lowering.types[layer.tensor(0)].dtype)
    rows = _arranged(rows, end.trip, length, layer.kind)
    poisoned = end.errors.rows[position] if state.tracks_errors else None
    return jnp.moveaxis(rows, 0, normal_axis(layer.axis, rows.ndim)), first_error(flag, poisoned)


def _last(state: LoopState, layer: ILoopOutputLayer, end: Carry, ended: Frame) -> tuple[Any, Any]:
    """The value of a LAST_VALUE output, which is element n after n iterations, and its error flag."""
    tensor: ITensor = layer.tensor(0)
    return state.lowering.array(tensor, ended), first_error(end.errors.limits, ended.error_flag([tensor]))


def _arranged(rows: jax.Array, trips: Any, length: int, kind: LoopOutput) -> jax.Array:
    """The first ``trips`` rows, in the order of ``kind``, then zeros up to ``length``."""
    if len(rows) < length:
        rows = unfolded(rows, length * math.prod(rows.shape[1:]))
        rows = lax.pad(rows, _zero(rows.dtype), [(0, length - len(rows), 0), *[(0, 0, 0)] * (rows.ndim - 1)])
    rows = rows[:length]
    if kind is LoopOutput.REVERSE:
        # flipped, the zeros of the iterations that were not made come first; rolling brings them to the end
        rows = jnp.flip(rows, 0)
        rows = rows if isinstance(trips, int) and trips >= length else jnp.roll(rows, trips - length, 0)
    return rows


def _zero(dtype: Any) -> Any:
    """Zero, or the least number of E8M0, which has no zero: JAX would make it NaN."""
    return np.zeros((), dtype)
