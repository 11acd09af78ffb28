"""W4: a running sum of rows, all of them stacked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from onnx import ModelProto

import netloop as trt
from benchmarks.building import SUM, Script, onnx_model
from benchmarks.workload import Arrays, Call, Jax, Workload, normal


@dataclass(frozen=True)
class RunningSum(Workload):
    """The cumulative sums of the rows of x[length, width]."""

    length: int = 4096
    width: int = 256

    floors = {"expert": 1.05, "onnxruntime loop": 0.12}
    passes = ("elementwise_loops", "loop_unrolling")

    @property
    def name(self) -> str:
        return f"W4 running sum {self.length} x {self.width}"

    def inputs(self) -> Arrays:
        return {"x": normal(0, self.length, self.width)}

    def network(self) -> trt.INetworkDefinition:
        script = Script()
        x = script.input("x", self.inputs()["x"])
        loop = script.counted(self.length)
        total = loop.add_recurrence(script.constant(np.zeros(self.width)))
        after = script.combine(total.outputs[0], loop.add_iterator(x).outputs[0], SUM)
        total.set_input(1, after)
        return script.mark(y=script.stack(loop, after, self.length))

    def idiomatic(self) -> Jax:
        return Jax(lambda _, inputs: {"y": jnp.cumsum(inputs["x"], 0)})

    def expert(self) -> Jax:
        def function(_: Any, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            def body(total: Any, row: Any) -> Any:
                total = total + row
                return total, total

            return {"y": lax.scan(body, jnp.zeros(self.width), inputs["x"])[1]}

        return Jax(function)

    def gpu_expert(self) -> Jax:
        return Jax(lambda _, inputs: {"y": lax.associative_scan(jnp.add, inputs["x"], axis=0)})

    def models(self) -> Mapping[str, Callable[[], ModelProto]]:
        return {"op": self.op_model, "loop": self.loop_model}

    def op_model(self) -> ModelProto:
        """CumSum."""
        return onnx_model(self.graph("y = CumSum (x, axis)"), {"axis": np.array(0, np.int64)})

    def loop_model(self) -> ModelProto:
        """A Scan."""
        row = f"float[{self.width}]"
        body = f"""last, y = Scan <num_scan_inputs = 1, body = step ({row} s, {row} v) => ({row} t, {row} out) {{
                t = Add (s, v)
                out = Identity (t)
            }}> (zero, x)"""
        return onnx_model(self.graph(body), {"zero": np.zeros(self.width, np.float32)})

    def graph(self, body: str) -> str:
        """The text of a graph from x to y."""
        shape = f"float[{self.length},{self.width}]"
        return f"running_sum ({shape} x) => ({shape} y) {{ {body} }}"

    def torch(self, torch: Any) -> Call:
        return lambda inputs: {"y": torch.cumsum(inputs["x"], 0)}

    def numba(self, numba: Any) -> Call:
        @numba.njit
        def run(x: Any) -> Any:
            y = np.empty_like(x)
            y[0] = x[0]
            for i in range(1, x.shape[0]):
                for j in range(x.shape[1]):
                    y[i, j] = y[i - 1, j] + x[i, j]
            return y

        return lambda inputs: {"y": run(inputs["x"])}


CASES: list[Workload] = [RunningSum()]
