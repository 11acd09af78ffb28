"""B1, B2 and B3: the overhead of netloop in a build, in a call and in loading a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import lax

import netloop as trt
from benchmarks.building import PROD, SUM, Script, Tensor
from benchmarks.workload import Arrays, Call, Workload, normal
from benchmarks.workloads.rnn import Lstm
from netloop.model.nest import Scopes, nest


@dataclass(frozen=True)
class Build(Workload):
    """From a network to a traced JAX program, compared with the same program traced by hand; XLA is in neither."""

    layers: int = 1000
    depth: int = 0

    @property
    def name(self) -> str:
        return f"B1 build of {f'loops {self.depth} deep' if self.depth else f'{self.layers} layers'}"

    @property
    def beyond(self) -> Mapping[str, float]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return {"JAX": 0.5 * self.made().num_layers}

    def inputs(self) -> Arrays:
        return {"x": np.ones(8, np.float32)}

    def made(self) -> trt.INetworkDefinition:
        """Nested loops, or a chain of formulas."""
        script = Script()
        x = script.input("x", self.inputs()["x"])
        return script.mark(y=self.nested(script, x) if self.depth else self.chain(script, x))

    def chain(self, script: Script, x: Tensor) -> Tensor:
        """Alternating sums and products with two constants."""
        constants = script.constant([0.5]), script.constant([1.0])
        for number in range(self.layers - 2):
            x = script.network.add_elementwise(x, constants[number % 2], (PROD, SUM)[number % 2]).outputs[0]
        return x

    def nested(self, script: Script, x: Tensor) -> Tensor:
        """Nested loops of two iterations, which halve the value from outside and the result from inside."""
        two, half = script.number(2), script.constant([0.5])
        states: list[trt.IRecurrenceLayer] = []
        for _ in range(self.depth):
            loop = script.counted(two)
            states.append(loop.add_recurrence(x))
            x = script.network.add_elementwise(states[-1].outputs[0], half, PROD).outputs[0]
        for state in reversed(states):
            state.set_input(1, x)
            x = script.last(state.loop, state.outputs[0])
        return x

    def chain_by_hand(self, x: Any) -> Any:
        """The chain in JAX."""
        for number in range(self.layers - 2):
            x = x + 1.0 if number % 2 else x * 0.5
        return x

    def nested_by_hand(self, x: Any, depth: int) -> Any:
        """The loops in JAX."""
        inside = (lambda x: x * 0.5) if depth == 1 else (lambda x: self.nested_by_hand(x * 0.5, depth - 1))
        return lax.scan(lambda x, _: (inside(x), None), x, length=2)[0]

    def parts(self) -> Mapping[str, Callable[[], Call]]:
        network = self.made()

        def whole(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            function, weights = trt.to_jax(network)
            jax.make_jaxpr(function)(weights, inputs)
            return {}

        def by_hand(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            jax.make_jaxpr(lambda x: self.nested_by_hand(x, self.depth) if self.depth else self.chain_by_hand(x))(
                inputs["x"]
            )
            return {}

        def check(_: Mapping[str, Any]) -> Mapping[str, Any]:
            return {"findings": len(trt.check(network))}

        def nesting(_: Mapping[str, Any]) -> Mapping[str, Any]:
            nest(network, Scopes(network))
            return {}

        def adding(_: Mapping[str, Any]) -> Mapping[str, Any]:
            self.made()
            return {}

        parts = {"netloop": whole, "JAX": by_hand, "add layers": adding, "check": check, "nest": nesting}
        return {name: lambda part=part: part for name, part in parts.items()}


@dataclass(frozen=True)
class Calls(Workload):
    """A call of an engine that computes almost nothing, compared with a call of the bare program."""

    count: int = 1

    beyond = {"bare": 0.015}

    @property
    def name(self) -> str:
        return f"B2 call with {self.count} input{'s' * (self.count > 1)}"

    def inputs(self) -> Arrays:
        return {f"x{number}": normal(number, 8) for number in range(self.count)}

    def network(self) -> trt.INetworkDefinition:
        script = Script()
        tensors = [script.input(name, array) for name, array in self.inputs().items()]
        return script.mark(**{f"y{number}": script.combine(tensor, 1.0, SUM) for number, tensor in enumerate(tensors)})

    def parts(self) -> Mapping[str, Callable[[], Call]]:
        def bare() -> Call:
            function, weights = trt.to_jax(self.network())
            with jax.enable_x64(True):
                program = jax.jit(function).lower(weights, self.inputs()).compile()
            return lambda inputs: program(weights, inputs)

        return {"bare": bare}


@dataclass(frozen=True)
class Load(Workload):
    """An engine from a plan, compared with the same by hand: weights packed, and the program traced and compiled."""

    beyond = {"JAX": 50.0}

    @property
    def name(self) -> str:
        return "B3 load of a plan"

    def inputs(self) -> Arrays:
        return {"x": np.zeros(1, np.float32)}

    def parts(self) -> Mapping[str, Callable[[], Call]]:
        lstm = Lstm(layers=2)

        def load() -> Call:
            runtime, plan = trt.Runtime(trt.Logger(trt.Logger.ERROR)), trt.compile(lstm.network()).serialize()

            def call(_: Mapping[str, Any]) -> Mapping[str, Any]:
                runtime.deserialize_cuda_engine(plan)
                return {}

            return call

        def by_hand() -> Call:
            weights = [lstm.weights(layer, 0) for layer in range(lstm.layers)]
            function, inputs = lstm.expert().function, lstm.inputs()

            def call(_: Mapping[str, Any]) -> Mapping[str, Any]:
                packed = jax.device_put([[lstm.pack_fast(weight)] for weight in weights])
                # a new function for each call, so that JAX traces and compiles it anew
                jax.jit(lambda *arguments: function(*arguments)).lower(packed, inputs).compile()
                return {}

            return call

        return {"netloop": load, "JAX": by_hand}


CASES: list[Workload] = [
    *(Build(layers=number) for number in (100, 1000, 10_000)),
    *(Build(depth=number) for number in (1, 5, 10, 20)),
    Calls(),
    Calls(8),
    Load(),
]
