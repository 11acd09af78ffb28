"""W3: loops of many iterations, each of which computes almost nothing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from onnx import ModelProto

import netloop as trt
from benchmarks.building import DIV, EQUAL, PROD, SUB, SUM, Op, Script, Tensor, onnx_model
from benchmarks.workload import Arrays, Call, Jax, Workload, numbers


@dataclass(frozen=True)
class Tiny(Workload):
    """A state that is updated in each iteration from itself and an input."""

    trips: int = 100_000
    stacked: bool = False

    floors = {"expert": 1.05, "peer": 0.01, "numba": 2.0}
    passes = ("loop_unrolling",)
    title = ""
    constant = 1.0
    onnx_type = "float"
    onnx_body = ""

    @property
    def name(self) -> str:
        return f"W3 {self.title}{' stacked' * self.stacked} {self.trips} iterations"

    @abstractmethod
    def step(self, script: Script, s: Tensor, a: Tensor) -> Tensor:
        """The next state."""

    @abstractmethod
    def formula(self, s: Any, a: Any) -> Any:
        """The same with Python operators."""

    def network(self) -> trt.INetworkDefinition:
        script = Script()
        a, first = (script.input(name, array) for name, array in self.inputs().items())
        loop = script.counted(self.trips)
        state = loop.add_recurrence(first)
        after = self.step(script, state.outputs[0], a)
        state.set_input(1, after)
        if self.stacked:
            return script.mark(y=script.stack(loop, after, self.trips))
        return script.mark(y=script.last(loop, state.outputs[0]))

    def scan(self, unroll: int) -> Jax:
        """All iterations, ``unroll`` at a time."""

        def function(_: Any, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            def body(s: Any, _: None) -> Any:
                s = self.formula(s, inputs["a"])
                return s, s if self.stacked else None

            last, rows = lax.scan(body, inputs["s"], length=self.trips, unroll=unroll)
            return {"y": rows if self.stacked else last}

        return Jax(function)

    def idiomatic(self) -> Jax:
        return self.scan(1)

    def expert(self) -> Jax:
        return self.scan(8 if self.stacked else 16)

    def gpu_expert(self) -> Jax:
        return self.scan(64)

    def models(self) -> Mapping[str, Callable[[], ModelProto]]:
        return {"loop": self.loop_model}

    def loop_model(self) -> ModelProto:
        """A Loop with as few operators as possible."""
        out, scanned = f"{self.onnx_type} out", "out = Identity (t)"
        result = f"float[{self.trips}] y" if self.stacked else f"{self.onnx_type} y"
        outputs = "last, y" if self.stacked else "y"
        text = f"""
        tiny ({self.onnx_type} a, {self.onnx_type} s) => ({result}) {{
            {outputs} = Loop <body = trip (int64 i, bool go_on, {self.onnx_type} u)
                => (bool go_on2, {self.onnx_type} t{", " + out if self.stacked else ""}) {{
                go_on2 = Identity (go_on)
                {self.onnx_body}
                {scanned if self.stacked else ""}
            }}> (trips, yes, s)
        }}"""
        arrays = {"trips": np.array(self.trips, np.int64), "yes": np.array(True)}
        return onnx_model(text, {**arrays, "constant": np.array(self.constant, np.float32)})

    def torch(self, torch: Any) -> Call:
        def call(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            s, a, rows = inputs["s"], inputs["a"], []
            for _ in range(self.trips):
                s = self.formula(s, a)
                if self.stacked:
                    rows.append(s)
            return {"y": torch.stack(rows) if self.stacked else s}

        return call


@dataclass(frozen=True)
class Newton(Tiny):
    """A square root by Newton's steps."""

    title = "Newton"
    onnx_body = "q = Div (a, u)\nw = Add (u, q)\nt = Mul (w, constant)"
    constant = 0.5

    def inputs(self) -> Arrays:
        return {"a": np.array(1234.5, np.float32), "s": np.array(1234.5, np.float32)}

    def step(self, script: Script, s: Tensor, a: Tensor) -> Tensor:
        both = script.combine(s, script.combine(a, s, DIV), SUM)
        return script.combine(both, 0.5, PROD)

    def formula(self, s: Any, a: Any) -> Any:
        return (s + a / s) * 0.5

    def numba(self, numba: Any) -> Call:
        half = np.float32(0.5)

        @numba.njit
        def last(s: Any, a: Any, trips: int) -> Any:
            for _ in range(trips):
                s = (s + a / s) * half
            return s

        @numba.njit
        def every(s: Any, a: Any, trips: int) -> Any:
            rows = np.empty(trips, np.float32)
            for i in range(trips):
                s = (s + a / s) * half
                rows[i] = s
            return rows

        run = every if self.stacked else last
        return lambda inputs: {"y": run(inputs["s"][()], inputs["a"][()], self.trips)}


@dataclass(frozen=True)
class EightFloats(Tiny):
    """Eight logistic maps, with rates for which they converge."""

    title = "eight floats"
    onnx_type = "float[8]"
    onnx_body = "d = Sub (constant, u)\nm = Mul (a, u)\nt = Mul (m, d)"

    def inputs(self) -> Arrays:
        random = numbers(0)
        return {
            name: random.uniform(low, high, 8).astype(np.float32) for name, low, high in (("a", 1.5, 2.8), ("s", 0, 1))
        }

    def step(self, script: Script, s: Tensor, a: Tensor) -> Tensor:
        rest = script.combine(script.constant([1.0]), s, SUB)
        return script.combine(script.combine(a, s, PROD), rest, PROD)

    def formula(self, s: Any, a: Any) -> Any:
        return a * s * (1 - s)

    def numba(self, numba: Any) -> Call:
        one = np.float32(1)

        @numba.njit
        def run(s: Any, a: Any, trips: int) -> Any:
            s = s.copy()
            for _ in range(trips):
                for j in range(8):
                    s[j] = a[j] * s[j] * (one - s[j])
            return s

        return lambda inputs: {"y": run(inputs["s"], inputs["a"], self.trips)}


@dataclass(frozen=True)
class Collatz(Workload):
    """Collatz steps from 1, 2, 3, ...; whenever 1 is reached, the next number starts."""

    trips: int = 100_000

    floors = Tiny.floors
    passes = ("if_conversion", "loop_unrolling")

    @property
    def name(self) -> str:
        return f"W3 Collatz {self.trips} iterations"

    def inputs(self) -> Arrays:
        return {"start": np.array(1, np.int32)}

    def network(self) -> trt.INetworkDefinition:
        script = Script()
        start = script.input("start", self.inputs()["start"])
        loop = script.counted(self.trips)
        number, current = loop.add_recurrence(start), loop.add_recurrence(start)
        k, n = number.outputs[0], current.outputs[0]
        half = script.combine(n, 2, Op.FLOOR_DIV)
        is_even = script.combine(script.combine(half, 2, PROD), n, EQUAL)
        more = script.combine(script.combine(n, 3, PROD), 1, SUM)
        following = script.choose(is_even, half, more)
        ends = script.network.add_if_conditional()
        ends.set_condition(script.combine(n, 1, EQUAL))
        next_number = script.combine(k, 1, SUM)
        number.set_input(1, ends.add_output(next_number, k).outputs[0])
        current.set_input(1, ends.add_output(next_number, following).outputs[0])
        return script.mark(k=script.last(loop, k), n=script.last(loop, n))

    def idiomatic(self) -> Jax:
        def function(_: Any, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            def follow(k: Any, n: Any) -> Any:
                return k, lax.cond(n % 2 == 0, lambda: n // 2, lambda: 3 * n + 1)

            def body(_: Any, state: Any) -> Any:
                k, n = state
                return lax.cond(n == 1, lambda: (k + 1, k + 1), lambda: follow(k, n))

            k, n = lax.fori_loop(0, self.trips, body, (inputs["start"], inputs["start"]))
            return {"k": k, "n": n}

        return Jax(function)

    def expert(self) -> Jax:
        def function(_: Any, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            def body(_: Any, state: Any) -> Any:
                k, n = state
                ends = n == 1
                k = k + ends
                return k, jnp.where(ends, k, jnp.where(n & 1 == 0, n >> 1, 3 * n + 1))

            k, n = lax.fori_loop(0, self.trips, body, (inputs["start"], inputs["start"]), unroll=16)
            return {"k": k, "n": n}

        return Jax(function)

    def models(self) -> Mapping[str, Callable[[], ModelProto]]:
        return {"loop": self.loop_model}

    def loop_model(self) -> ModelProto:
        """A Loop that selects by Where."""
        text = """
        collatz (int32 start) => (int32 k, int32 n) {
            k, n = Loop <body = trip (int64 i, bool go_on, int32 u, int32 v)
                => (bool go_on2, int32 u2, int32 v2) {
                go_on2 = Identity (go_on)
                ends = Equal (v, one)
                added = Add (u, one)
                u2 = Where (ends, added, u)
                half = Div (v, two)
                rest = Mod (v, two)
                odd = Cast <to = 9> (rest)
                thrice = Mul (v, three)
                more = Add (thrice, one)
                follow = Where (odd, more, half)
                v2 = Where (ends, added, follow)
            }> (trips, yes, start, start)
        }"""
        arrays = {name: np.array(value, np.int32) for name, value in (("one", 1), ("two", 2), ("three", 3))}
        return onnx_model(text, {**arrays, "trips": np.array(self.trips, np.int64), "yes": np.array(True)})

    def numba(self, numba: Any) -> Call:
        @numba.njit
        def run(start: int, trips: int) -> Any:
            k = n = start
            for _ in range(trips):
                if n == 1:
                    k += 1
                    n = k
                elif n % 2 == 0:
                    n //= 2
                else:
                    n = 3 * n + 1
            return k, n

        return lambda inputs: dict(zip("kn", run(int(inputs["start"]), self.trips), strict=True))


CASES: list[Workload] = [Newton(), EightFloats(), Newton(stacked=True), Collatz()]
