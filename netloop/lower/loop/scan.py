"""A loop whose number of trips is known, to ``lax.scan``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import lax

from netloop.graph.tensor import ITensor
from netloop.layers.loop import IIteratorLayer
from netloop.layers.rearrange import lower_joined
from netloop.lower.loop.fission import Parts, split
from netloop.lower.loop.state import Done
from netloop.lower.loop.unroll_heuristic import trips_at_a_time
from netloop.types import TINY

if TYPE_CHECKING:
    from netloop.lower.loop.while_loop import Loop

Arrays = Sequence[Any]


def scan(loop: Loop, trips: int) -> Done:
    """Run a known number of trips."""
    return _Scan(loop, trips).run()


class _Scan:
    """A loop of a known number of trips.

    What is "given" to a trip is its number, and a slice of each iterator.
    """

    def __init__(self, loop: Loop, trips: int) -> None:
        self.loop = loop
        self.program = loop.program
        self.trips = trips
        self.name = loop.step.loop.name
        self.iterators = [each for each in loop.step.iterators if self.program.stays_inside(each)]
        self.slices = [each.outputs[0] for each in self.iterators]
        self.parts = self._parts()
        loop.program.batched_layers[loop.step.loop] = [step.layer for step in (*self.parts.ahead, *self.parts.behind)]

    def _parts(self) -> Parts:
        loop = self.loop
        if "loop_fission" not in self.program.passes or loop.carries or self.trips < 2:
            return Parts(loop.body, loop.rows, self.trips)
        parts = split(loop.body, loop.states, loop.next, loop.rows, self.program.types, self.trips)
        layers = len(parts.ahead) + len(parts.behind)
        if layers:
            self.program.note(
                "loop_fission", f"layers of {self.name!r} that run for {parts.chunk} trips at once: {layers}"
            )
        return parts

    def run(self) -> Done:
        """All trips."""
        given = jnp.arange(self.trips), [self._sliced(each) for each in self.iterators]
        carry = self.loop.initial(), self.loop.initial_faults()
        run = self._chunk if self.parts.chunk >= self.trips else self._chunks
        (states, faults), rows = run(carry, given)
        return Done(self.trips, states, rows, faults)

    def _chunks(self, carry: Any, given: Any) -> tuple[Any, list[Any]]:
        """Chunk by chunk, and what is left over in the end."""
        size = self.parts.chunk
        whole = self.trips - self.trips % size
        folded = jax.tree.map(lambda each: each[:whole].reshape(whole // size, size, *each.shape[1:]), given)
        carry, rows = lax.scan(self._chunk, carry, folded)
        rows = [each.reshape(whole, *each.shape[2:]) for each in rows]
        if whole < self.trips:
            carry, rest = self._chunk(carry, jax.tree.map(lambda each: each[whole:], given))
            rows = [lower_joined(pair, 0) for pair in zip(rows, rest, strict=True)]
        return carry, rows

    def _chunk(self, carry: Any, given: Any) -> tuple[Any, list[Any]]:
        """Some trips: what needs no state, the trips one by one, and what no state needs."""
        parts = self.parts
        made = jax.vmap(self._ahead)(given) if parts.ahead else []
        carry, kept = lax.scan(self._trip, carry, (given, made), unroll=self._unroll())
        if not parts.behind:
            return carry, self._chosen(self.loop.rows, dict(zip(parts.rows, kept, strict=True)), made)
        late = jax.vmap(self._behind)(given, made, kept)
        known = dict(zip([*parts.rows, *self._late()], [*kept, *late], strict=True))
        return carry, self._chosen(self.loop.rows, known, made)

    def _chosen(self, rows: Sequence[ITensor], known: dict[ITensor, Any], made: Arrays) -> list[Any]:
        known.update(zip(self.parts.made, made, strict=True))
        return [known[each] for each in rows]

    def _late(self) -> list[ITensor]:
        """What the stacked outputs take of what is computed after the trips."""
        late = {tensor for step in self.parts.behind for tensor in step.writes}
        return [each for each in dict.fromkeys(self.loop.rows) if each in late]

    # ------------------------------------------------------------------ one trip

    def _ahead(self, given: Any) -> Arrays:
        inside = self._inside(given)
        self.program.run(self.parts.ahead, inside)
        return [self.program.array(each, inside) for each in self.parts.made]

    def _trip(self, carry: Any, given: Any) -> tuple[Any, Arrays]:
        (states, faults), (own, made) = carry, given
        inside = self.loop.inside(own[0], states, faults)
        inside.values.update(zip([*self.slices, *self.parts.made], [*own[1], *made], strict=True))
        states, rows, faults = self.loop.run_trip(inside, faults, self.parts.core, self.parts.rows)
        return (states, faults), rows

    def _behind(self, given: Any, made: Arrays, kept: Arrays) -> Arrays:
        inside = self._inside(given)
        inside.values.update(zip([*self.parts.made, *self.parts.rows], [*made, *kept], strict=True))
        self.program.run(self.parts.behind, inside)
        return [self.program.array(each, inside) for each in self._late()]

    def _inside(self, given: Any) -> Any:
        """The frame of a trip, without the states."""
        trip, elements = given
        inside = self.loop.frame.inside()
        inside.trips[self.loop.step.loop] = trip
        inside.values.update(zip(self.slices, elements, strict=True))
        return inside

    def _sliced(self, layer: IIteratorLayer) -> jax.Array:
        """What an iterator reads, in the order in which it does, along axis 0."""
        array = self.program.array(layer.tensor(0), self.loop.frame)
        rows = jnp.moveaxis(array, layer.axis, 0)[: self.trips]
        return jnp.flip(rows, 0) if layer.reverse else rows

    def _unroll(self) -> int:
        """How many trips are made at a time; one if JAX would join rows of types that ``lower_joined`` has to."""
        types, rows = self.program.types, self.parts.rows
        if "loop_unrolling" not in self.program.passes or any(types[each].dtype in TINY for each in rows):
            return 1
        trips = trips_at_a_time(self.parts.core, types, bool(rows))
        if trips > 1:
            self.program.note("loop_unrolling", f"{trips} trips of {self.name!r} are made at a time")
        return trips
