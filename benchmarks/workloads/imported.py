"""A1 and A2: recurrences as model converters write them, with counters instead of iterators and stacked outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

import netloop as trt
from benchmarks.building import SUM, TANH, Script
from benchmarks.workload import Arrays, Jax, Workload, normal
from benchmarks.workloads.running_sum import RunningSum


@dataclass(frozen=True)
class Imported(Workload):
    """h = tanh(x[t] W + h U), with a counter that reads x, another for the iterations, and a constant state."""

    size: int = 256
    length: int = 256

    passes = ("redundant_carries", "induction_variables")

    @property
    def name(self) -> str:
        return f"A1 imported recurrence of {self.size}, {self.length} steps"

    def inputs(self) -> Arrays:
        return {"x": normal(0, self.length, self.size)}

    @cached_property
    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """W and U."""
        scale = 0.5 * self.size**-0.5
        return normal(1, self.size, self.size, scale=scale), normal(2, self.size, self.size, scale=scale)

    def network(self) -> trt.INetworkDefinition:
        script = Script()
        x = script.input("x", self.inputs()["x"])
        loop = script.counted(self.length)
        reads, counts = script.counter(loop), script.counter(loop)
        rows = loop.add_recurrence(x)
        rows.set_input(1, rows.outputs[0])
        state = loop.add_recurrence(script.constant(np.zeros((1, self.size))))
        row = script.gather(rows.outputs[0], script.reshape(reads, 1))
        first, second = map(script.constant, self.weights)
        both = script.combine(script.matmul(row, first), script.matmul(state.outputs[0], second), SUM)
        state.set_input(1, script.activate(both, TANH))
        return script.mark(y=script.last(loop, state.outputs[0]), n=script.last(loop, counts))

    def idiomatic(self) -> Jax:
        def function(weights: Any, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            def body(trip: Any, h: Any) -> Any:
                return jnp.tanh(inputs["x"][trip] @ weights[0] + h @ weights[1])

            return {"y": lax.fori_loop(0, self.length, body, jnp.zeros((1, self.size))), "n": jnp.int32(self.length)}

        return Jax(function, self.weights)

    def expert(self) -> Jax:
        def function(weights: Any, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            def body(h: Any, row: Any) -> Any:
                return jnp.tanh(row + lax.dot_general(h, weights[1], (((1,), (1,)), ((), ())))), None

            y, _ = lax.scan(body, jnp.zeros((1, self.size)), inputs["x"] @ weights[0])
            return {"y": y, "n": jnp.int32(self.length)}

        return Jax(function, (self.weights[0], self.weights[1].T.copy()))


@dataclass(frozen=True)
class Written(RunningSum):
    """The sums of W4; each iteration writes its own into a buffer at a counter."""

    floors = {}
    passes = ("induction_variables",)

    @property
    def name(self) -> str:
        return f"A2 imported running sum {self.length} x {self.width}"

    def network(self) -> trt.INetworkDefinition:
        script = Script()
        x = script.input("x", self.inputs()["x"])
        loop = script.counted(self.length)
        trip = script.counter(loop)
        total = loop.add_recurrence(script.constant(np.zeros((1, self.width))))
        row = script.gather(x, script.reshape(trip, 1))
        total.set_input(1, script.combine(total.outputs[0], row, SUM))
        buffer = loop.add_recurrence(script.constant(np.zeros((self.length, self.width))))
        written = script.network.add_scatter(
            buffer.outputs[0], script.reshape(trip, 1, 1), total.tensor(1), trt.ScatterMode.ND
        )
        buffer.set_input(1, written.outputs[0])
        return script.mark(y=script.last(loop, buffer.outputs[0]))

    def idiomatic(self) -> Jax:
        def function(_: Any, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            def body(trip: Any, carry: Any) -> Any:
                total, buffer = carry
                total = total + inputs["x"][trip]
                return total, buffer.at[trip].set(total)

            first = jnp.zeros(self.width), jnp.zeros((self.length, self.width))
            return {"y": lax.fori_loop(0, self.length, body, first)[1]}

        return Jax(function)


CASES: list[Workload] = [Imported(), Written()]
