"""W1: an LSTM and a GRU over a sequence."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from onnx import ModelProto

import netloop as trt
from benchmarks.building import (
    CONCATENATE,
    PROD,
    REVERSE,
    SIGMOID,
    SUB,
    SUM,
    TANH,
    TRANSPOSE,
    Script,
    Tensor,
    onnx_model,
)
from benchmarks.workload import Arrays, Call, Jax, Workload, normal

LARGEST_HOISTED = 4 << 20
"""The bytes of input products that stay in the cache; larger ones are computed in chunks."""

CHUNK = 8
GPU_UNROLL = 16
LEAST_BATCH_OF_PLAIN_PRODUCTS = 8
LEAST_LEFT = 1 << 19
"""The elements of a matrix that takes longer to pack than the state."""


class Weights(NamedTuple):
    """The weights of one direction of one layer, by gate: LSTM's i, f, g, o; GRU's r, z, n.

    Attributes:
        kernel: [gates, hidden, input].
        recurrent: [gates, hidden, hidden].
        bias: [gates, hidden], of the input.
        recurrent_bias: the same, of the state.
    """

    kernel: np.ndarray
    recurrent: np.ndarray
    bias: np.ndarray
    recurrent_bias: np.ndarray


@dataclass(frozen=True)
class Rnn(Workload):
    """Layers over a sequence of ``length`` steps for ``batch`` rows; input and state have ``hidden`` elements."""

    hidden: int = 512
    batch: int = 1
    layers: int = 1
    bidirectional: bool = False
    length: int = 128

    passes = (
        "recurrent_kernels",
        "horizontal_fusion",
        "weight_prepacking",
        "gate_fusion",
        "weight_folding",
        "loop_fission",
    )
    kind: ClassVar[str]
    gates: ClassVar[int]
    onnx_order: ClassVar[Sequence[int]]
    states: ClassVar[int]

    @property
    def name(self) -> str:
        extra = f" {self.layers} layers" * (self.layers > 1) + " bidirectional" * self.bidirectional
        return f"W1 {self.kind} {self.hidden} batch {self.batch}{extra}"

    @property
    def floors(self) -> Mapping[str, float]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return {"expert": 1.05, "peer": 1.08 if self.batch == 1 else 1.25}

    @property
    def directions(self) -> int:
        """1, or 2 if the sequence is read in both directions."""
        return 1 + self.bidirectional

    def inputs(self) -> Arrays:
        return {"x": normal(0, self.length, self.batch, self.hidden)}

    def weights(self, layer: int, direction: int) -> Weights:
        """The weights of one direction of a layer."""
        width = self.hidden * (self.directions if layer else 1)
        seed, scale = 100 + 10 * layer + 4 * direction, self.hidden**-0.5
        shapes = (self.hidden, width), (self.hidden, self.hidden), (self.hidden,), (self.hidden,)
        return Weights(*(normal(seed + i, self.gates, *shape, scale=scale) for i, shape in enumerate(shapes)))

    # ------------------------------------------------------------------ netloop

    def network(self) -> trt.INetworkDefinition:
        script = Script()
        x = script.input("x", self.inputs()["x"])
        for layer in range(self.layers):
            rows = [self.add_direction(script, x, layer, index) for index in range(self.directions)]
            x = script.concatenate(rows, 2) if self.bidirectional else rows[0]
        return script.mark(y=x)

    def add_direction(self, script: Script, x: Tensor, layer: int, direction: int) -> Tensor:
        """The states after each step of one direction of a layer."""
        weights = self.weights(layer, direction)
        loop = script.counted(self.length)
        now = loop.add_iterator(x, 0, bool(direction)).outputs[0]
        zero = script.constant(np.zeros((self.batch, self.hidden)))
        states = [loop.add_recurrence(zero) for _ in range(self.states)]
        after = self.cell(script, weights, now, [state.outputs[0] for state in states])
        for state, value in zip(states, after, strict=True):
            state.set_input(1, value)
        return script.stack(loop, after[0], self.length, REVERSE if direction else CONCATENATE)

    @abstractmethod
    def cell(self, script: Script, weights: Weights, x: Tensor, states: list[Tensor]) -> list[Tensor]:
        """The states after one more step."""

    def affine(self, script: Script, kernel: np.ndarray, bias: np.ndarray, x: Tensor) -> Tensor:
        """A matrix product plus a bias."""
        product = script.matmul(x, script.constant(kernel), TRANSPOSE)
        return script.combine(product, script.constant(bias[None]), SUM)

    # ------------------------------------------------------------------ JAX

    def idiomatic(self) -> Jax:
        return Jax(self.stacked(lambda weights, x, reverse: self.plain_scan(weights, x, reverse)), self.packed(False))

    def expert(self) -> Jax:
        return Jax(self.stacked(lambda weights, x, reverse: self.fast_scan(weights, x, reverse)), self.packed(True))

    def gpu_expert(self) -> Jax:
        """The plain scan, 16 steps at a time: launches decide, and XLA captures them as one graph."""
        scan = partial(self.plain_scan, unroll=GPU_UNROLL)
        return Jax(self.stacked(scan), self.packed(False))

    def stacked(self, scan: Callable[[Any, Any, bool], Any]) -> Callable[[Any, Any], Any]:
        """All layers in both directions."""

        def function(weights: Any, inputs: Any) -> Any:
            x = inputs["x"]
            for layer in weights:
                rows = [scan(value, x, bool(direction)) for direction, value in enumerate(layer)]
                x = jnp.concatenate(rows, 2) if self.bidirectional else rows[0]
            return {"y": x}

        return function

    def packed(self, fast: bool) -> list[list[Any]]:
        """The weights of each direction of each layer, in the form for its scan."""
        pack = self.pack_fast if fast else self.pack_plain
        return [
            [pack(self.weights(layer, direction)) for direction in range(self.directions)]
            for layer in range(self.layers)
        ]

    def pack_plain(self, weights: Weights) -> Any:
        """Gates joined."""
        width, hidden = weights.kernel.shape[-1], self.hidden
        return Weights(
            weights.kernel.reshape(-1, width).T.copy(),
            weights.recurrent.reshape(-1, hidden).T.copy(),
            weights.bias.reshape(-1),
            weights.recurrent_bias.reshape(-1),
        )

    def plain_scan(self, weights: Any, x: Any, reverse: bool, unroll: int = 1) -> Any:
        """A scan that computes everything in each step, as flax and haiku do."""

        def step(states: Any, row: Any) -> Any:
            states = self.plain_step(weights, states, row)
            return states, states[0]

        zero = jnp.zeros((self.batch, self.hidden))
        return lax.scan(step, (zero,) * self.states, x, reverse=reverse, unroll=unroll)[1]

    @abstractmethod
    def plain_step(self, weights: Any, states: Any, x: Any) -> Any:
        """A step, from joined gates."""

    def pack_fast(self, weights: Weights) -> Any:
        """Gates joined and scaled so that one tanh computes all; recurrent weights as their product reads them."""
        scale = self.scale()[:, None, None]
        kernel = (weights.kernel * scale).reshape(-1, weights.kernel.shape[-1])
        recurrent = (weights.recurrent * scale).reshape(-1, self.hidden)
        if self.batch >= LEAST_BATCH_OF_PLAIN_PRODUCTS and recurrent.size < LEAST_LEFT:
            recurrent = recurrent.T.copy()
        biases = self.fast_biases(weights.bias * scale[..., 0], weights.recurrent_bias * scale[..., 0])
        return Weights(kernel.T.copy(), recurrent, *biases)

    @abstractmethod
    def scale(self) -> np.ndarray:
        """1/2 for gates whose activation is the sigmoid, 0.5 * tanh(0.5 * x) + 0.5."""

    @abstractmethod
    def fast_biases(self, bias: np.ndarray, recurrent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The biases that are added to the product of the input, and to that of the state."""

    @abstractmethod
    def fast_step(self, weights: Any, states: Any, gates: Any) -> Any:
        """A step, from the product of its input."""

    def each_step(self, products: Any) -> Any:
        """The products of the input in the form that the steps read."""
        return products

    def times_state(self, weights: Any, h: Any) -> Any:
        """The product of the recurrent weights with the state, in the layout that is fastest for this batch."""
        if self.batch < LEAST_BATCH_OF_PLAIN_PRODUCTS:
            return lax.dot_general(h, weights.recurrent, (((1,), (1,)), ((), ())))
        if weights.recurrent.size < LEAST_LEFT:
            return h @ weights.recurrent
        return lax.optimization_barrier(lax.dot_general(weights.recurrent, h, (((1,), (1,)), ((), ())))).T

    def fast_scan(self, weights: Any, x: Any, reverse: bool) -> Any:
        """A scan whose input products are computed in advance, all at once or in chunks."""

        def step(states: Any, gates: Any) -> Any:
            states = self.fast_step(weights, states, gates)
            return states, states[0]

        def some(states: Any, rows: Any) -> Any:
            return lax.scan(step, states, self.each_step(rows @ weights.kernel + weights.bias), reverse=reverse)

        states = (jnp.zeros((self.batch, self.hidden)),) * self.states
        if self.length * self.batch * self.hidden * self.gates * 4 <= LARGEST_HOISTED or self.length % CHUNK:
            return some(states, x)[1]
        rows = lax.scan(some, states, x.reshape(-1, CHUNK, *x.shape[1:]), reverse=reverse)[1]
        return rows.reshape(self.length, self.batch, self.hidden)

    # ------------------------------------------------------------------ peers

    def models(self) -> Mapping[str, Callable[[], ModelProto]]:
        return (
            {"op": self.op_model}
            if self.layers > 1 or self.bidirectional
            else {"op": self.op_model, "loop": self.loop_model}
        )

    def op_model(self) -> ModelProto:
        """The operator of ONNX, one node for each layer."""
        direction = "bidirectional" if self.bidirectional else "forward"
        arrays, nodes = dict[str, np.ndarray](), list[str]()
        for layer in range(self.layers):
            both = [self.onnx_weights(self.weights(layer, index)) for index in range(self.directions)]
            arrays.update(
                zip((f"W{layer}", f"R{layer}", f"B{layer}"), map(np.stack, zip(*both, strict=True)), strict=True)
            )
            extra = ", linear_before_reset = 1" if self.kind == "GRU" else ""
            nodes.append(
                f'r{layer} = {self.kind} <hidden_size = {self.hidden}, direction = "{direction}"{extra}>'
                f" (y{layer}, W{layer}, R{layer}, B{layer})\n"
                f"t{layer} = Transpose <perm = [0, 2, 1, 3]> (r{layer})\n"
                f"y{layer + 1} = Reshape (t{layer}, shape)"
            )
        arrays["shape"] = np.array([self.length, self.batch, -1], np.int64)
        body = "\n".join(nodes).replace("(y0,", "(x,").replace(f"y{self.layers} =", "y =")
        return onnx_model(self.graph(body), arrays)

    def onnx_weights(self, weights: Weights) -> tuple[np.ndarray, ...]:
        """W, R and B of one direction."""
        kernel, recurrent, *biases = (weight[list(self.onnx_order)] for weight in weights)
        joined = np.concatenate([bias.reshape(-1) for bias in biases])
        return kernel.reshape(-1, kernel.shape[-1]), recurrent.reshape(-1, self.hidden), joined

    def graph(self, body: str) -> str:
        """The text of a graph from x to y."""
        shape = f"float[{self.length},{self.batch},{self.hidden}]"
        out = f"float[{self.length},{self.batch},{self.hidden * self.directions}]"
        return f"rnn ({shape} x) => ({out} y) {{\n{body}\n}}"

    @abstractmethod
    def loop_model(self) -> ModelProto:
        """A Scan over packed gates, with the input products before it."""

    def torch(self, torch: Any) -> Call:
        module = getattr(torch.nn, self.kind)(
            self.hidden, self.hidden, self.layers, bidirectional=self.bidirectional
        ).eval()
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        for layer in range(self.layers):
            for direction in range(self.directions):
                for name, array in zip(names, self.weights(layer, direction), strict=True):
                    parameter = getattr(module, f"{name}_l{layer}" + "_reverse" * direction)
                    parameter.data = torch.from_numpy(array.reshape(parameter.shape))
        module.flatten_parameters()
        return lambda inputs: {"y": module(inputs["x"])[0]}


@dataclass(frozen=True)
class Lstm(Rnn):
    """An LSTM."""

    kind = "LSTM"
    gates = 4
    onnx_order = (0, 3, 1, 2)
    states = 2

    def cell(self, script: Script, weights: Weights, x: Tensor, states: list[Tensor]) -> list[Tensor]:
        h, c = states

        def gate(number: int, kind: trt.ActivationType) -> Tensor:
            from_x = self.affine(script, weights.kernel[number], weights.bias[number], x)
            from_h = self.affine(script, weights.recurrent[number], weights.recurrent_bias[number], h)
            return script.activate(script.combine(from_x, from_h, SUM), kind)

        i, f, g, o = (gate(number, kind) for number, kind in enumerate((SIGMOID, SIGMOID, TANH, SIGMOID)))
        c = script.combine(script.combine(f, c, PROD), script.combine(i, g, PROD), SUM)
        return [script.combine(o, script.activate(c, TANH), PROD), c]

    def plain_step(self, weights: Any, states: Any, x: Any) -> Any:
        h, c = states
        gates = x @ weights.kernel + weights.bias + h @ weights.recurrent + weights.recurrent_bias
        i, f, g, o = jnp.split(gates, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return jax.nn.sigmoid(o) * jnp.tanh(c), c

    def scale(self) -> np.ndarray:
        return np.array([0.5, 0.5, 1, 0.5], np.float32)

    def fast_biases(self, bias: np.ndarray, recurrent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (bias + recurrent).reshape(-1), np.zeros((), np.float32)

    def fast_step(self, weights: Any, states: Any, gates: Any) -> Any:
        h, c = states
        i, f, g, o = jnp.split(jnp.tanh(gates + self.times_state(weights, h)), 4, -1)
        c = (0.5 * f + 0.5) * c + (0.5 * i + 0.5) * g
        return (0.5 * o + 0.5) * jnp.tanh(c), c

    def loop_model(self) -> ModelProto:
        weights = self.pack_plain(self.weights(0, 0))
        zero = np.zeros((self.batch, self.hidden), np.float32)
        arrays = {"W": weights.kernel, "R": weights.recurrent, "b": weights.bias + weights.recurrent_bias}
        state = f"float[{self.batch},{self.hidden}]"
        row = f"float[{self.batch},{4 * self.hidden}]"
        body = f"""
            xw = MatMul (x, W)
            xb = Add (xw, b)
            hn, cn, y = Scan <num_scan_inputs = 1, body = step ({state} h, {state} c, {row} g)
                => ({state} h2, {state} c2, {state} out) {{
                hr = MatMul (h, R)
                a = Add (hr, g)
                i0, f0, g0, o0 = Split <axis = 1, num_outputs = 4> (a)
                i = Sigmoid (i0)
                f = Sigmoid (f0)
                n = Tanh (g0)
                o = Sigmoid (o0)
                fc = Mul (f, c)
                ig = Mul (i, n)
                c2 = Add (fc, ig)
                t = Tanh (c2)
                h2 = Mul (o, t)
                out = Identity (h2)
            }}> (zero, zero, xb)"""
        return onnx_model(self.graph(body), {**arrays, "zero": zero})


@dataclass(frozen=True)
class Gru(Rnn):
    """A GRU whose reset gate applies to the product of the state, as in PyTorch and cuDNN."""

    kind = "GRU"
    gates = 3
    onnx_order = (1, 0, 2)
    states = 1

    def cell(self, script: Script, weights: Weights, x: Tensor, states: list[Tensor]) -> list[Tensor]:
        (h,) = states
        from_x = [self.affine(script, weights.kernel[index], weights.bias[index], x) for index in range(3)]
        from_h = [self.affine(script, weights.recurrent[index], weights.recurrent_bias[index], h) for index in range(3)]
        r, z = (script.activate(script.combine(from_x[number], from_h[number], SUM), SIGMOID) for number in (0, 1))
        n = script.activate(script.combine(from_x[2], script.combine(r, from_h[2], PROD), SUM), TANH)
        return [script.combine(n, script.combine(z, script.combine(h, n, SUB), PROD), SUM)]

    def plain_step(self, weights: Any, states: Any, x: Any) -> Any:
        (h,) = states
        xr, xz, xn = jnp.split(x @ weights.kernel + weights.bias, 3, -1)
        hr, hz, hn = jnp.split(h @ weights.recurrent + weights.recurrent_bias, 3, -1)
        r, z = jax.nn.sigmoid(xr + hr), jax.nn.sigmoid(xz + hz)
        n = jnp.tanh(xn + r * hn)
        return ((1 - z) * n + z * h,)

    def scale(self) -> np.ndarray:
        return np.array([0.5, 0.5, 1], np.float32)

    def fast_biases(self, bias: np.ndarray, recurrent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.concatenate([*(bias + recurrent)[:2], bias[2]]), recurrent[2]

    def fast_step(self, weights: Any, states: Any, gates: Any) -> Any:
        (h,), (xr, xz, xn) = states, gates
        hr, hz, hn = jnp.split(self.times_state(weights, h), 3, -1)
        r, z = 0.5 * jnp.tanh(xr + hr) + 0.5, 0.5 * jnp.tanh(xz + hz) + 0.5
        n = jnp.tanh(xn + r * (hn + weights.recurrent_bias))
        return (n + z * (h - n),)

    def each_step(self, products: Any) -> Any:
        return jnp.split(products, 3, -1)

    def loop_model(self) -> ModelProto:
        weights = self.pack_plain(self.weights(0, 0))
        zero = np.zeros((self.batch, self.hidden), np.float32)
        state = f"float[{self.batch},{self.hidden}]"
        row = f"float[{self.batch},{3 * self.hidden}]"
        body = f"""
            xw = MatMul (x, W)
            xb = Add (xw, b)
            hn, y = Scan <num_scan_inputs = 1, body = step ({state} h, {row} g) => ({state} h2, {state} out) {{
                hr = MatMul (h, R)
                hb = Add (hr, c)
                xr, xz, xn = Split <axis = 1, num_outputs = 3> (g)
                sr, sz, sn = Split <axis = 1, num_outputs = 3> (hb)
                r0 = Add (sr, xr)
                z0 = Add (sz, xz)
                r = Sigmoid (r0)
                z = Sigmoid (z0)
                rn = Mul (r, sn)
                n0 = Add (rn, xn)
                n = Tanh (n0)
                d = Sub (h, n)
                zd = Mul (z, d)
                h2 = Add (n, zd)
                out = Identity (h2)
            }}> (zero, xb)"""
        arrays = {"W": weights.kernel, "R": weights.recurrent, "b": weights.bias, "c": weights.recurrent_bias}
        return onnx_model(self.graph(body), {**arrays, "zero": zero})


CASES: list[Workload] = [
    Lstm(),
    Lstm(batch=16),
    Lstm(hidden=256, batch=32),
    Lstm(layers=2),
    Lstm(bidirectional=True),
    Gru(),
    Gru(batch=16),
    Gru(hidden=256, batch=32),
]
