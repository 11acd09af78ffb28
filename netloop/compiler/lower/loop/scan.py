"""A loop with a known trip count as ``lax.scan``."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from netloop.compiler.lower.frame import Frame
from netloop.compiler.lower.loop.fission import Parts, split_body
from netloop.compiler.lower.loop.iterators import all_slices
from netloop.compiler.lower.loop.rows import in_bytes, of_type
from netloop.compiler.lower.loop.state import Carry, LoopState
from netloop.compiler.lower.loop.unroll_heuristic import launches_factor, unroll_factor
from netloop.compiler.passes.forms import LoopFission, LoopUnrolling, LoweringForm
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.rearrange import lower_joined
from netloop.model.manual_axes import scan
from netloop.values.types import TINY

Arrays = Sequence[Any]


class Scan:
    """A loop with a known trip count; one that ``is_rare`` is not unrolled, which saves compiling it.

    An iteration is given its number and a slice of each iterator, and returns a row of each stacked output: XLA then
    knows all positions while compiling, and nothing but the state is carried. Slices and rows are in the form of
    ``rows`` outside of an iteration.
    """

    def __init__(self, state: LoopState, trips: int, is_rare: bool = False) -> None:
        self._state, self._is_rare = state, is_rare
        self._lowering = state.lowering
        self._trips = trips
        self._name = state.step.loop.name
        # an iterator that may pass the end of its axis is lowered with a check, in the body
        self._iterators = [iterator for iterator in state.step.iterators if self._lowering.facts.stays_inside(iterator)]
        self._slices = [iterator.outputs[0] for iterator in self._iterators]
        self._rows = state.step.rows
        self._parts = self._split()
        moved = [*self._parts.prologue, *self._parts.epilogue]
        self._lowering.batched_layers[state.step.loop] = [step.layer for step in moved]

    def _split(self) -> Parts:
        step = self._state.step
        # error flags are those of one iteration, which a batched layer does not have
        if LoweringForm.LOOP_FISSION not in self._lowering.passes or self._state.tracks_errors or self._trips < 2:
            return Parts(step.iteration, self._rows, self._trips)
        chunk_bytes = LoopFission.chunks.get(self._lowering.forms.get(LoweringForm.LOOP_FISSION, ""))
        is_cached = self._lowering.platform not in ("gpu", "tpu")
        parts = split_body(step, self._lowering.types, self._trips, chunk_bytes, is_cached)
        layers = len(parts.prologue) + len(parts.epilogue)
        if layers:
            note = f"layers of {self._name!r} that run for {parts.chunk} iterations at once: {layers}"
            self._lowering.note(LoweringForm.LOOP_FISSION, note)
        return parts

    def run(self) -> Carry:
        """The carry after all iterations, with the rows of the stacked outputs as its buffers."""
        carry, rows = self.iterated(self._state.initial(), self.slices())
        return carry._replace(trip=self._trips, buffers=rows)

    def slices(self) -> Arrays:
        """The slices of each iterator, in the form of ``rows``."""
        slices = [all_slices(self._lowering, iterator, self._trips, self._state.frame) for iterator in self._iterators]
        return [in_bytes(array, self._lowering.platform) for array in slices]

    def iterated(self, carry: Carry, slices: Arrays) -> tuple[Carry, list[Any]]:
        """The carry after all iterations, given the first one and the slices, and the rows of the stacked outputs."""
        run = self._chunk if self._parts.chunk >= self._trips else self._chunks
        return run(carry, (jnp.arange(self._trips), slices))

    def _chunks(self, carry: Carry, inputs: Any) -> tuple[Carry, list[Any]]:
        """All iterations: a scan over whole chunks, then the remainder."""
        size = self._parts.chunk
        whole = self._trips - self._trips % size
        folded = jax.tree.map(lambda array: array[:whole].reshape(whole // size, size, *array.shape[1:]), inputs)
        carry, rows = scan(self._chunk, carry, folded)
        rows = [row.reshape(whole, *row.shape[2:]) for row in rows]
        if whole < self._trips:
            carry, rest = self._chunk(carry, jax.tree.map(lambda value: value[whole:], inputs))
            rows = [lower_joined(pair, 0) for pair in zip(rows, rest, strict=True)]
        return carry, rows

    def _chunk(self, carry: Carry, inputs: Any) -> tuple[Carry, list[Any]]:
        """A chunk of iterations: the prologue for all of them, the bodies one by one, the epilogue for all."""
        parts = self._parts
        ahead = jax.vmap(self._prologue)(inputs) if parts.prologue else []
        carry, kept = scan(self._iterate, carry, (inputs, ahead), unroll=self._unroll())
        values = dict(zip(parts.kept, kept, strict=True))
        if parts.epilogue:
            late = jax.vmap(self._epilogue)(inputs, ahead, kept)
            values.update(zip(self._late_rows(), late, strict=True))
        values.update(zip(parts.prologue_values, ahead, strict=True))
        return carry, [values[row] for row in self._rows]

    def _late_rows(self) -> list[ITensor]:
        """The rows of stacked outputs that the epilogue computes."""
        late = {tensor for step in self._parts.epilogue for tensor in step.writes}
        return [row for row in dict.fromkeys(self._rows) if row in late]

    def _prologue(self, inputs: Any) -> Arrays:
        inside = self._inside(inputs)
        self._lowering.run(self._parts.prologue, inside)
        return self._stored(self._parts.prologue_values, inside)

    def _iterate(self, carry: Carry, inputs: Any) -> tuple[Carry, Arrays]:
        (trip, slices), ahead = inputs
        inside = self._state.unpack(carry, trip)
        self._load([*self._slices, *self._parts.prologue_values], [*slices, *ahead], inside)
        self._lowering.run(self._parts.body, inside)
        return self._state.pack(carry, inside), self._stored(self._parts.kept, inside)

    def _epilogue(self, inputs: Any, ahead: Arrays, kept: Arrays) -> Arrays:
        inside = self._inside(inputs)
        self._load([*self._parts.prologue_values, *self._parts.kept], [*ahead, *kept], inside)
        self._lowering.run(self._parts.epilogue, inside)
        return self._stored(self._late_rows(), inside)

    def _inside(self, inputs: Any) -> Frame:
        """The frame of an iteration, without the state."""
        trip, slices = inputs
        inside = self._state.iteration(trip)
        self._load(self._slices, slices, inside)
        return inside

    def _stored(self, tensors: Sequence[ITensor], inside: Frame) -> Arrays:
        """The values of tensors in an iteration, as rows."""
        return [in_bytes(self._lowering.array(tensor, inside), self._lowering.platform) for tensor in tensors]

    def _load(self, tensors: Sequence[ITensor], rows: Arrays, inside: Frame) -> None:
        """Put rows into the frame of an iteration, in the types of their tensors."""
        for tensor, row in zip(tensors, rows, strict=True):
            inside.values[tensor] = of_type(row, self._lowering.types[tensor].dtype)

    def _unroll(self) -> int:
        """The number of iterations that one of the compiled loop makes."""
        types, kept = self._lowering.types, self._parts.kept
        if LoweringForm.LOOP_UNROLLING not in self._lowering.passes or self._is_rare:
            return 1
        # JAX joins the rows of unrolled iterations, and XLA ends the process when it joins types of 2 bits
        if self._lowering.platform == "cpu" and any(types[tensor].dtype in TINY for tensor in kept):
            return 1
        factor = unroll_factor(self._parts.body, types, bool(kept))
        if self._lowering.platform == "gpu":
            factor = max(factor, launches_factor(self._parts.body, types, self._trips, bool(kept)))
        if factor > 1:
            factor = LoopUnrolling.factors.get(self._lowering.forms.get(LoweringForm.LOOP_UNROLLING, ""), factor)
            note = f"{factor} iterations of {self._name!r} are made at a time"
            self._lowering.note(LoweringForm.LOOP_UNROLLING, note)
        return factor
