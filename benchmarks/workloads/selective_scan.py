"""W8: the selective scan of Mamba, a linear recurrence whose rates depend on the input."""

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
from benchmarks.building import PROD, SUM, Script, onnx_model
from benchmarks.workload import Arrays, Call, Jax, Workload, normal, numbers


@dataclass(frozen=True)
class SelectiveScan(Workload):
    """h = exp(d A) h + (d x) B and y = h C, where d, x [width] and B, C [states] are new in each step."""

    batch: int = 1
    width: int = 256
    states: int = 16
    length: int = 1024

    floors = {"expert": 1.0, "peer": 0.1}
    passes = ("matmul_recognition", "carry_layout")

    @property
    def name(self) -> str:
        return f"W8 selective scan {self.batch} x {self.width} x {self.states}, {self.length} steps"

    def inputs(self) -> Arrays:
        n, b, d, s = self.length, self.batch, self.width, self.states
        steps = numbers(0).uniform(0.001, 0.1, (n, b, d, 1)).astype(np.float32)
        return {"d": steps, "x": normal(1, n, b, d, 1), "B": normal(2, n, b, 1, s), "C": normal(3, n, b, 1, s)}

    @cached_property
    def rates(self) -> np.ndarray:
        """A, [width, states]."""
        return -numbers(4).uniform(1, self.states, (1, self.width, self.states)).astype(np.float32)

    def network(self) -> trt.INetworkDefinition:
        script = Script()
        inputs = [script.input(name, array) for name, array in self.inputs().items()]
        loop = script.counted(self.length)
        d, x, b, c = (loop.add_iterator(tensor).outputs[0] for tensor in inputs)
        state = loop.add_recurrence(script.constant(np.zeros((self.batch, self.width, self.states))))
        exponent = script.combine(d, script.constant(self.rates), PROD)
        decay = script.network.add_unary(exponent, trt.UnaryOperation.EXP).outputs[0]
        kept = script.combine(decay, state.outputs[0], PROD)
        added = script.combine(script.combine(d, x, PROD), b, PROD)
        after = script.combine(kept, added, SUM)
        state.set_input(1, after)
        y = script.reduce(script.combine(after, c, PROD), trt.ReduceOperation.SUM, 2)
        return script.mark(y=script.stack(loop, y, self.length))

    def idiomatic(self) -> Jax:
        def function(rates: Any, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            def combine(left: Any, right: Any) -> Any:
                return left[0] * right[0], right[0] * left[1] + right[1]

            d, x, b, c = (inputs[name] for name in "dxBC")
            _, h = lax.associative_scan(combine, (jnp.exp(d * rates), d * x * b))
            return {"y": jnp.sum(h * c, -1)}

        return Jax(function, self.rates)

    def expert(self) -> Jax:
        """Width along the last axis, where XLA has vectors; the sum as a matrix product, not fused with exp."""

        def function(rates: Any, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            def step(h: Any, now: Any) -> Any:
                d, dx, b, c = now
                h = jnp.exp(d * rates) * h + dx * jnp.swapaxes(b, 1, 2)
                return h, lax.dot_general(c, h, (((2,), (1,)), ((0,), (0,))))[:, 0]

            d, x = (jnp.swapaxes(inputs[name], 2, 3) for name in "dx")
            h = jnp.zeros((self.batch, self.states, self.width))
            return {"y": lax.scan(step, h, (d, d * x, inputs["B"], inputs["C"]))[1]}

        return Jax(function, self.rates.swapaxes(1, 2).copy())

    def gpu_expert(self) -> Jax:
        return self.idiomatic()  # a prefix scan

    def models(self) -> Mapping[str, Callable[[], ModelProto]]:
        return {"loop": self.loop_model}

    def loop_model(self) -> ModelProto:
        """A Scan."""
        n, b, d, s = self.length, self.batch, self.width, self.states
        column, row, state, out = (f"float[{b},{name}]" for name in (f"{d},1", f"1,{s}", f"{d},{s}", f"{d}"))
        text = f"""
        selective_scan (float[{n},{b},{d},1] d, float[{n},{b},{d},1] x, float[{n},{b},1,{s}] B, float[{n},{b},1,{s}] C)
            => (float[{n},{b},{d}] y) {{
            dx = Mul (d, x)
            last, y = Scan <num_scan_inputs = 4, body = step (
                {state} h, {column} di, {column} dxi, {row} Bi, {row} Ci) => ({state} h2, {out} yi) {{
                e = Mul (di, A)
                a = Exp (e)
                k = Mul (a, h)
                b = Mul (dxi, Bi)
                h2 = Add (k, b)
                p = Mul (h2, Ci)
                yi = ReduceSum <keepdims = 0> (p, axis)
            }}> (zero, d, dx, B, C)
        }}"""
        zero = np.zeros((b, d, s), np.float32)
        return onnx_model(text, {"A": self.rates, "zero": zero, "axis": np.array([2], np.int64)})

    def torch(self, torch: Any) -> Call:
        rates = torch.from_numpy(self.rates)

        def call(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            h, rows = torch.zeros(self.batch, self.width, self.states), []
            for d, x, b, c in zip(*(inputs[name] for name in "dxBC"), strict=True):
                h = torch.addcmul(d * x * b, torch.exp(d * rates), h)
                rows.append((h * c).sum(-1))
            return {"y": torch.stack(rows)}

        return call

    def numba(self, numba: Any) -> Call:
        rates = self.rates[0]

        @numba.njit(fastmath=True)
        def run(d: Any, x: Any, b: Any, c: Any, rates: Any) -> Any:
            n, batch, width = d.shape[:3]
            h, y = np.zeros((batch, *rates.shape), np.float32), np.zeros((n, batch, width), np.float32)
            for t in range(n):
                for i in range(batch):
                    for j in range(width):
                        total = np.float32(0)
                        for k in range(rates.shape[1]):
                            step = d[t, i, j, 0]
                            h[i, j, k] = np.exp(step * rates[j, k]) * h[i, j, k] + step * x[t, i, j, 0] * b[t, i, 0, k]
                            total += h[i, j, k] * c[t, i, 0, k]
                        y[t, i, j] = total
            return y

        return lambda inputs: {"y": run(*(inputs[name] for name in "dxBC"), rates)}


CASES: list[Workload] = [SelectiveScan(), SelectiveScan(batch=4)]
