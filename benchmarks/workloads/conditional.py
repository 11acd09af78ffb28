"""W7: a conditional in a loop, with cheap branches and with an expensive one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from onnx import ModelProto

import netloop as trt
from benchmarks.building import PROD, SUM, TANH, Script, Tensor, onnx_model
from benchmarks.workload import Arrays, Call, Jax, Workload, normal, numbers


@dataclass(frozen=True)
class Conditional(Workload):
    """A state that takes one of two branches in each iteration, by flags."""

    trips: int
    size: int

    title = ""
    share = 0.5
    onnx_body = ""

    @property
    def name(self) -> str:
        return f"W7 conditional, {self.title}"

    def inputs(self) -> Arrays:
        return {"flags": numbers(0).random(self.trips) < self.share, "s": normal(1, 1, self.size)}

    @cached_property
    def weights(self) -> list[np.ndarray]:
        """The factors of the branches."""
        return []

    @abstractmethod
    def taken(self, script: Script, s: Tensor) -> Tensor:
        """The branch for a set flag."""

    def network(self) -> trt.INetworkDefinition:
        script = Script()
        flags, first = (script.input(name, array) for name, array in self.inputs().items())
        loop = script.counted(self.trips)
        state = loop.add_recurrence(first)
        s = state.outputs[0]
        other = script.combine(script.combine(s, 0.5, PROD), 0.25, SUM)
        state.set_input(1, script.choose(loop.add_iterator(flags).outputs[0], self.taken(script, s), other))
        return script.mark(y=script.last(loop, s))

    @abstractmethod
    def formula(self, s: Any, weights: Any, xp: Any) -> Any:
        """The branch for a set flag, for arrays of any module."""

    def conditionals(self) -> Jax:
        """A scan with ``lax.cond``."""

        def function(weights: Any, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            def body(s: Any, flag: Any) -> Any:
                return lax.cond(flag, lambda: self.formula(s, weights, jnp), lambda: s * 0.5 + 0.25), None

            return {"y": lax.scan(body, inputs["s"], inputs["flags"])[0]}

        return Jax(function, self.weights)

    def models(self) -> Mapping[str, Callable[[], ModelProto]]:
        return {"loop": self.loop_model}

    def loop_model(self) -> ModelProto:
        """A Scan over the flags."""
        state = f"float[1,{self.size}]"
        text = f"""
        conditional (bool[{self.trips}] flags, {state} s) => ({state} y) {{
            y = Scan <num_scan_inputs = 1, body = step ({state} u, bool flag) => ({state} t) {{
                {self.onnx_body.replace("state", state)}
            }}> (s, flags)
        }}"""
        numbers = {"half": np.float32(0.5), "quarter": np.float32(0.25), "less": np.float32(0.9)}
        used = {name: np.array(value) for name, value in numbers.items() if f"{name})" in text}
        return onnx_model(text, {**used, **{f"W{i}": weight for i, weight in enumerate(self.weights)}})

    def torch(self, torch: Any) -> Call:
        weights = [torch.from_numpy(weight) for weight in self.weights]

        def call(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            s = inputs["s"]
            for flag in inputs["flags"].tolist():
                s = self.formula(s, weights, torch) if flag else s * 0.5 + 0.25
            return {"y": s}

        return call


@dataclass(frozen=True)
class Cheap(Conditional):
    """Both branches are a few operations on a few numbers."""

    trips: int = 10_000
    size: int = 16

    floors = {"expert": 1.1, "peer": 0.06}
    passes = ("if_conversion", "loop_unrolling")
    title = "cheap branches"
    onnx_body = """a = Mul (u, half)
                b = Add (a, quarter)
                c = Mul (u, less)
                t = Where (flag, c, b)"""

    def taken(self, script: Script, s: Tensor) -> Tensor:
        return script.combine(s, 0.9, PROD)

    def formula(self, s: Any, weights: Any, xp: Any) -> Any:
        return s * 0.9

    def idiomatic(self) -> Jax:
        return self.conditionals()

    def expert(self) -> Jax:
        return self.selections(8)

    def gpu_expert(self) -> Jax:
        return self.selections(64)

    def selections(self, unroll: int) -> Jax:
        """A scan that computes both branches."""

        def function(_: Any, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            def body(s: Any, flag: Any) -> Any:
                return jnp.where(flag, s * 0.9, s * 0.5 + 0.25), None

            return {"y": lax.scan(body, inputs["s"], inputs["flags"], unroll=unroll)[0]}

        return Jax(function)

    def numba(self, numba: Any) -> Call:
        less, half, quarter = map(np.float32, (0.9, 0.5, 0.25))

        @numba.njit
        def run(s: Any, flags: Any) -> Any:
            s = s.copy()
            for flag in flags:
                for j in range(s.shape[1]):
                    s[0, j] = s[0, j] * less if flag else s[0, j] * half + quarter
            return s

        return lambda inputs: {"y": run(inputs["s"], inputs["flags"])}


@dataclass(frozen=True)
class Dear(Conditional):
    """One branch has four products and is taken once in eight iterations."""

    trips: int = 4096
    size: int = 64

    floors = {"expert": 1.1, "peer": 0.3}
    title = "an expensive branch in 8"
    share = 1 / 8
    onnx_body = """t = If (flag) <
                    then_branch = expensive () => (state v) {
                        p0 = MatMul (u, W0)
                        t0 = Tanh (p0)
                        p1 = MatMul (t0, W1)
                        t1 = Tanh (p1)
                        p2 = MatMul (t1, W2)
                        t2 = Tanh (p2)
                        p3 = MatMul (t2, W3)
                        v = Tanh (p3)
                    },
                    else_branch = cheap () => (state w) {
                        a = Mul (u, half)
                        w = Add (a, quarter)
                    }
                >"""

    @cached_property
    def weights(self) -> list[np.ndarray]:
        return [normal(2 + index, self.size, self.size, scale=self.size**-0.5) for index in range(4)]

    def taken(self, script: Script, s: Tensor) -> Tensor:
        for weights in self.weights:
            s = script.activate(script.matmul(s, script.constant(weights)), TANH)
        return s

    def formula(self, s: Any, weights: Any, xp: Any) -> Any:
        for weight in weights:
            s = xp.tanh(s @ weight)
        return s

    def idiomatic(self) -> Jax:
        def function(weights: Any, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            def body(s: Any, flag: Any) -> Any:
                return jnp.where(flag, self.formula(s, weights, jnp), s * 0.5 + 0.25), None

            return {"y": lax.scan(body, inputs["s"], inputs["flags"])[0]}

        return Jax(function, self.weights)

    def expert(self) -> Jax:
        return self.conditionals()


CASES: list[Workload] = [Cheap(), Dear()]
