"""The functions of a loop whose requests run in slots: derived from the region tree of a network of one request."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from netloop.compiler.execution.slot_checks import is_open
from netloop.compiler.lower import Program
from netloop.compiler.lower.frame import Frame
from netloop.compiler.lower.loop.entry import enter
from netloop.compiler.lower.loop.outputs import empty_buffers, leave
from netloop.compiler.lower.loop.rows import in_bytes
from netloop.compiler.lower.loop.state import Carry, LoopState
from netloop.compiler.lower.loop.while_loop import WhileLoop
from netloop.model.graph.tensor import ITensor
from netloop.model.nest import LayerStep, LoopStep, Step, walk, weight_only_tensors


class Kept(NamedTuple):
    """Values computed before the loop and read in it or after it, kept for each request.

    Attributes:
        values: their values.
        error_flags: the error flag of each; None for one that cannot be poisoned.
        status: the error flag of the assertions before the loop; None if there are none.
    """

    values: list[Any]
    error_flags: list[Any]
    status: Any


class Slot(NamedTuple):
    """A request in its loop; with one more axis on the left, all slots.

    Attributes:
        kept: what it keeps of its beginning.
        carry: what the coming iteration reads, without buffers; None if the loop does not run at all.
        end: what the loop has carried after its last iteration, where ``carry`` stays before it; None elsewhere.
        buffers: the rows so far of the stacked outputs that do not stream.
        live: whether there is a coming iteration.
    """

    kept: Kept
    carry: Carry | None
    end: Carry | None
    buffers: list[Any]
    live: Any


class SlotLoop:
    """The steps of a program around one of its loops, as functions that JAX traces.

    A slot whose request has ended takes part in the iterations of the others, and its results are dropped. To mask a
    state costs a copy of it, so only those states stay as they were which the end of the request reads. If the loop
    contains another one of unknown length, which might never end for values past the last iteration, the slot repeats
    its last iteration instead.

    Attributes:
        streams: the positions of the outputs of the network which are rows of the loop, and are sent as they are made.
        rest: the positions of the other outputs.
    """

    def __init__(self, program: Program, steps: Sequence[Step], at: int, inputs: Sequence[ITensor]) -> None:
        step = steps[at]
        assert isinstance(step, LoopStep)
        self.step, self._program, self._inputs = step, program, inputs
        self._before, self._after = steps[:at], steps[at + 1 :]
        late = {tensor for step in self._after for tensor in step.reads}
        # layers after the loop read all rows at once
        direct = {output.outputs[0] for output in step.stacked if output.outputs[0] not in late}
        outputs = list(enumerate(program.outputs))
        self.streams = [position for position, tensor in outputs if tensor in direct]
        self.rest = [position for position, tensor in outputs if tensor not in direct]
        self._streamed = direct.intersection(program.outputs)
        fixed = weight_only_tensors(program.block)
        # computed again where they are read, as a copy for each slot would be larger; assertions write nothing
        layers = [step for step in self._before if isinstance(step, LayerStep)]
        self._fixed = [step for step in layers if step.writes and fixed.issuperset(step.writes)]
        tensors = {*inputs, *(tensor for step in self._before for tensor in step.writes)}
        # a dict, as the order of a set differs from process to process, and that of arguments must not
        wanted = dict.fromkeys([*step.reads, *late, *program.outputs])
        self._kept = [tensor for tensor in wanted if tensor in tensors - fixed and tensor not in program.constants]
        self._repeats = any(isinstance(node, LoopStep) and is_open(node, program) for node in walk(step.body))
        self._frozen = self._read_at_end()

    def _read_at_end(self) -> list[bool]:
        """Whether the end of a request reads each state."""
        lasts = [output.tensor(0) for output in self.step.outputs if not output.stacks]
        if self._program.facts.may_exceed_max_trips(self.step.loop):
            # the end asks whether the loop would have gone on
            lasts += [limit.tensor(0) for limit in self.step.limits]
        needed = {*lasts, *(tensor for step in self.step.body.needed(lasts) for tensor in step.reads)}
        return [state in needed for state in self.step.states]

    def prefill(self, loaded: dict[ITensor, Any], arrays: Sequence[Any]) -> Slot:
        """Run the layers before the loop; return the slot of a request before its first iteration."""
        frame = Frame({**loaded, **dict(zip(self._inputs, arrays, strict=True))})
        self._program.run(self._before, frame)
        values = [self._program.array(tensor, frame) for tensor in self._kept]
        # a status that is 0 in any case would be one more array for each slot
        status = None if isinstance(frame.status, int) else frame.status
        kept = Kept(values, [frame.error_flag([tensor]) for tensor in self._kept], status)
        state = enter(self._program, self.step, frame)
        if state is None:
            return Slot(kept, None, None, [], jnp.bool_(False))
        loop = WhileLoop(state)
        carry = loop.begin()
        buffers = [
            buffer for buffer, streams in zip(carry.buffers, self._is_streamed(state), strict=True) if not streams
        ]
        carry = carry._replace(buffers=[])
        return Slot(kept, carry, carry if self._repeats else None, buffers, loop.goes_on(carry))

    def trip(self, loaded: dict[ITensor, Any], slot: Slot) -> tuple[Slot, tuple[dict[int, Any], Any]]:
        """The slot after another iteration, the rows of its streams by position, and whether there was one."""
        state = enter(self._program, self.step, self._frame(loaded, slot.kept))
        if state is None or slot.carry is None:
            return slot, ({}, slot.live)
        loop, live = WhileLoop(state), slot.live
        after, rows = loop.advance(slot.carry)
        goes_on = jnp.logical_and(live, loop.goes_on(after))
        streamed, kept = dict[int, Any](), list[Any]()
        for layer, row, streams in zip(state.step.stacked, rows, self._is_streamed(state), strict=True):
            if streams:
                streamed[self._program.outputs.index(layer.outputs[0])] = row
            else:
                kept.append(row)
        # a row past the end of its buffer is dropped, and so is that of a request which has ended
        at = [jnp.where(live, slot.carry.trip, len(buffer)) for buffer in slot.buffers]
        entries = zip(slot.buffers, at, kept, strict=True)
        platform = self._program.platform
        buffers = [buffer.at[i].set(in_bytes(row, platform), mode="drop") for buffer, i, row in entries]
        if self._repeats:
            end = _chosen(live, after, slot.end)
            carry = _chosen(goes_on, after, slot.carry)
        else:
            end, carry = None, self._masked(live, after, slot.carry)
        return Slot(slot.kept, carry, end, buffers, goes_on), (streamed, live)

    def _masked(self, live: Any, after: Carry, before: Carry) -> Carry:
        pairs = zip(self._frozen, after.states, before.states, strict=True)
        states = [jnp.where(live, new, old) if frozen else new for frozen, new, old in pairs]
        return _chosen(live, after._replace(states=[]), before._replace(states=[]))._replace(states=states)

    def generate(self, loaded: dict[ITensor, Any], slots: Slot, trips: int) -> tuple[Slot, dict[int, Any], Any]:
        """All slots after some iterations; the rows of their streams, and which of them there were.

        Both have the axis of the iterations first, and that of the slots second.
        """

        def trip(slots: Slot, _: None) -> tuple[Slot, tuple[dict[int, Any], Any]]:
            return jax.vmap(partial(self.trip, loaded))(slots)

        slots, (rows, result) = lax.scan(trip, slots, None, length=trips)
        return slots, rows, result

    def finish(self, loaded: dict[ITensor, Any], slot: Slot) -> tuple[list[Any], Any]:
        """Run the layers after the loop; return the outputs that do not stream, and the error flag.

        The flag is None if nothing can fail.
        """
        frame = self._frame(loaded, slot.kept)
        state = enter(self._program, self.step, frame)
        carry = slot.carry if slot.end is None else slot.end
        if state is not None and carry is not None:
            rest = iter(slot.buffers)
            # XLA drops the outputs that stream, which nothing reads; their error flags do not depend on their rows
            pairs = zip(empty_buffers(state), self._is_streamed(state), strict=True)
            buffers = [empty if streams else next(rest) for empty, streams in pairs]
            leave(state, WhileLoop(state).end(carry._replace(buffers=buffers)))
        self._program.run(self._after, frame)
        outcome = self._program.outcome(frame)
        return [outcome.values[position] for position in self.rest], outcome.verdict()

    def _frame(self, loaded: dict[ITensor, Any], kept: Kept) -> Frame:
        """The frame around the loop."""
        frame = Frame({**loaded, **dict(zip(self._kept, kept.values, strict=True))})
        pairs = zip(self._kept, kept.error_flags, strict=True)
        frame.error_flags.update({tensor: flag for tensor, flag in pairs if flag is not None})
        frame.status = 0 if kept.status is None else kept.status
        self._program.run(self._fixed, frame)
        return frame

    def _is_streamed(self, state: LoopState) -> list[bool]:
        """Whether the rows of each stacked output stream, without the outputs that are poisoned from the start."""
        return [output.outputs[0] in self._streamed for output in state.step.stacked]


def _chosen(condition: Any, new: Any, old: Any) -> Any:
    return jax.tree.map(partial(jnp.where, condition), new, old)
