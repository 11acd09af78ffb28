"""W5: a nested loop with a product in the inner loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from onnx import ModelProto

import netloop as trt
from benchmarks.building import SUM, TANH, Script, onnx_model
from benchmarks.workload import Arrays, Call, Jax, Workload, normal


@dataclass(frozen=True)
class Nested(Workload):
    """h = tanh(h W + x[i, j]) for each i and j, and the h after each i."""

    size: int = 64

    floors = {"expert": 1.05, "peer": 0.12}

    @property
    def name(self) -> str:
        return f"W5 nested {self.size} x {self.size}"

    def inputs(self) -> Arrays:
        return {"x": normal(0, self.size, self.size, 1, self.size)}

    @cached_property
    def weights(self) -> np.ndarray:
        """W."""
        return normal(1, self.size, self.size, scale=0.5 * self.size**-0.5)

    def network(self) -> trt.INetworkDefinition:
        script = Script()
        x = script.input("x", self.inputs()["x"])
        outer = script.counted(self.size)
        inner = script.counted(self.size)
        state = outer.add_recurrence(script.constant(np.zeros((1, self.size))))
        h = inner.add_recurrence(state.outputs[0])
        now = inner.add_iterator(outer.add_iterator(x).outputs[0]).outputs[0]
        product = script.matmul(h.outputs[0], script.constant(self.weights))
        h.set_input(1, script.activate(script.combine(product, now, SUM), TANH))
        after = script.last(inner, h.outputs[0])
        state.set_input(1, after)
        return script.mark(y=script.stack(outer, after, self.size))

    def scans(self, times: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """A nested scan."""

        def function(weights: Any, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            def step(h: Any, x: Any) -> Any:
                return jnp.tanh(times(h, weights) + x), None

            def row(h: Any, x: Any) -> Any:
                h, _ = lax.scan(step, h, x)
                return h, h

            return {"y": lax.scan(row, jnp.zeros((1, self.size)), inputs["x"])[1]}

        return function

    def idiomatic(self) -> Jax:
        return Jax(self.scans(lambda h, weights: h @ weights), self.weights)

    def expert(self) -> Jax:
        times = lambda h, weights: lax.dot_general(h, weights, (((1,), (1,)), ((), ())))  # noqa: E731
        return Jax(self.scans(times), self.weights.T.copy())

    def models(self) -> Mapping[str, Callable[[], ModelProto]]:
        return {"scan": self.scan_model, "loop": self.loop_model}

    def scan_model(self) -> ModelProto:
        """A nested Scan, which OpenVINO does not read."""
        n, state = self.size, self.onnx_state
        body = f"""last, y = Scan <num_scan_inputs = 1, body = row ({state} g, float[{n},1,{n}] r)
                => ({state} g2, {state} out) {{
                g2 = Scan <num_scan_inputs = 1, body = step ({state} h, {state} v) => ({state} h2) {{
                    p = MatMul (h, W)
                    s = Add (p, v)
                    h2 = Tanh (s)
                }}> (g, r)
                out = Identity (g2)
            }}> (zero, x)"""
        return self.model(body, {})

    def loop_model(self) -> ModelProto:
        """A nested Loop."""
        state = self.onnx_state
        body = f"""last, y = Loop <body = row (int64 i, bool on, {state} g) => (bool on2, {state} g2, {state} out) {{
                on2 = Identity (on)
                r = Gather (x, i)
                g2 = Loop <body = step (int64 j, bool go, {state} h) => (bool go2, {state} h2) {{
                    go2 = Identity (go)
                    v = Gather (r, j)
                    p = MatMul (h, W)
                    s = Add (p, v)
                    h2 = Tanh (s)
                }}> (trips, yes, g)
                out = Identity (g2)
            }}> (trips, yes, zero)"""
        return self.model(body, {"trips": np.array(self.size, np.int64), "yes": np.array(True)})

    @property
    def onnx_state(self) -> str:
        """The type of h."""
        return f"float[1,{self.size}]"

    def model(self, body: str, arrays: Arrays) -> ModelProto:
        """The model with a body from x to y."""
        n = self.size
        text = f"nested (float[{n},{n},1,{n}] x) => (float[{n},1,{n}] y) {{ {body} }}"
        return onnx_model(text, {**arrays, "W": self.weights, "zero": np.zeros((1, n), np.float32)})

    def torch(self, torch: Any) -> Call:
        weights = torch.from_numpy(self.weights)

        def call(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            h, rows = torch.zeros(1, self.size), []
            for row in inputs["x"]:
                for x in row:
                    h = torch.tanh(torch.addmm(x, h, weights))
                rows.append(h)
            return {"y": torch.stack(rows)}

        return call

    def numba(self, numba: Any) -> Call:
        weights = self.weights

        @numba.njit(fastmath=True)
        def run(x: Any, weights: Any) -> Any:
            n = weights.shape[0]
            h, s, y = np.zeros(n, np.float32), np.empty(n, np.float32), np.empty((n, 1, n), np.float32)
            for i in range(n):
                for j in range(n):
                    s[:] = x[i, j, 0]
                    for k in range(n):
                        for m in range(n):
                            s[m] += h[k] * weights[k, m]
                    for m in range(n):
                        h[m] = np.tanh(s[m])
                y[i, 0] = h
            return y

        return lambda inputs: {"y": run(inputs["x"], weights)}


CASES: list[Workload] = [Nested()]
