"""W2: a language model of two LSTM layers generates text, character by character."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from onnx import ModelProto

import netloop as trt
from benchmarks.building import SUM, TRANSPOSE, Script, Tensor, onnx_model
from benchmarks.workload import Arrays, Call, Jax, Workload, normal
from benchmarks.workloads.rnn import Lstm

STATES = ("h0", "c0", "h1", "c1")


class Packed(NamedTuple):
    """Weights as an expert prepares them.

    Attributes:
        table: [characters, 4 * hidden], the contribution of each character to the gates of the first layer, with bias.
        first: the recurrent weights of the first layer, [4 * hidden, hidden].
        second: those of the second for its input and state joined, [4 * hidden, 2 * hidden].
        bias: the bias of the second.
        head: [characters, hidden].
        head_bias: its bias.
    """

    table: np.ndarray
    first: np.ndarray
    second: np.ndarray
    bias: np.ndarray
    head: np.ndarray
    head_bias: np.ndarray


@dataclass(frozen=True)
class CharRnn(Workload):
    """The model, and the common parts of its two ways to generate text."""

    hidden: int = 512
    characters: int = 65
    length: int = 256

    passes = (
        "recurrent_steps",
        "horizontal_fusion",
        "embedding_folding",
        "weight_prepacking",
        "gate_fusion",
        "weight_folding",
    )

    def inputs(self) -> Arrays:
        state = np.zeros((1, self.hidden), np.float32)
        return {"token": np.array([7], np.int32), **dict.fromkeys(STATES, state)}

    @cached_property
    def lstm(self) -> Lstm:
        """Both layers."""
        return Lstm(hidden=self.hidden, layers=2)

    @cached_property
    def embedding(self) -> np.ndarray:
        """A row for each character."""
        return normal(1, self.characters, self.hidden)

    @cached_property
    def head(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights and bias of the projection onto the characters."""
        return normal(2, self.characters, self.hidden), normal(3, self.characters)

    # ------------------------------------------------------------------ netloop

    def add_step(self, script: Script, token: Tensor, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """The next character, and the states after it."""
        x = script.gather(script.constant(self.embedding), token)
        after: list[Tensor] = []
        for layer in range(2):
            both = self.lstm.cell(script, self.lstm.weights(layer, 0), x, states[2 * layer : 2 * layer + 2])
            after += both
            x = both[0]
        weights, bias = self.head
        product = script.matmul(x, script.constant(weights), TRANSPOSE)
        logits = script.combine(product, script.constant(bias[None]), SUM)
        return script.reshape(script.largest(logits, 1, 1)[1], 1), after

    # ------------------------------------------------------------------ JAX

    def plain_weights(self) -> Any:
        """The plain weights, with gates joined."""
        layers = [self.lstm.pack_plain(self.lstm.weights(index, 0)) for index in range(2)]
        return self.embedding, layers, *self.head

    def plain_step(self, weights: Any, token: Any, states: Any) -> tuple[Any, Any]:
        """A step as users of JAX write it."""
        embedding, layers, head, bias = weights
        x, after = embedding[token], []
        for layer, state in zip(layers, (states[:2], states[2:]), strict=True):
            after += self.lstm.plain_step(layer, state, x)
            x = after[-2]
        return jnp.argmax(x @ head.T + bias, -1).astype(jnp.int32), tuple(after)

    def packed(self, scale: np.ndarray) -> Packed:
        """Everything that depends on weights only."""
        size = 4 * self.hidden
        (k0, r0, b0, d0), (k1, r1, b1, d1) = (
            [weight * scale.reshape(-1, *[1] * (weight.ndim - 1)) for weight in self.lstm.weights(layer, 0)]
            for layer in range(2)
        )
        table = self.embedding @ k0.reshape(size, -1).T + (b0 + d0).reshape(-1)
        second = np.concatenate([k1, r1], -1).reshape(size, -1)
        return Packed(table, r0.reshape(size, -1), second, (b1 + d1).reshape(-1), *self.head)

    def fast_step(self, weights: Packed, token: Any, states: Any) -> tuple[Any, Any]:
        """A step with one product in each layer."""
        h0, c0, h1, c1 = states
        h0, c0 = _lstm(weights.table[token] + _times(h0, weights.first), c0)
        h1, c1 = _lstm(_times(jnp.concatenate([h0, h1], -1), weights.second) + weights.bias, c1)
        return _first_largest(_times(h1, weights.head) + weights.head_bias), (h0, c0, h1, c1)

    # ------------------------------------------------------------------ peers

    def onnx_weights(self) -> Arrays:
        """The same as an expert's, transposed for MatMul."""
        packed = self.packed(np.ones(4, np.float32))
        arrays = {"table": packed.table, "R0": packed.first.T, "R1": packed.second.T, "b1": packed.bias}
        arrays |= {"V": packed.head.T, "bv": packed.head_bias}
        return {name: np.ascontiguousarray(array) for name, array in arrays.items()}

    def onnx_step(self) -> str:
        """The text of a step, from token_in, h0_in, c0_in, h1_in and c1_in to next, h0n, c0n, h1n and c1n."""
        return f"""
            e = Gather (table, token_in)
            p0 = MatMul (h0_in, R0)
            a0 = Add (p0, e)
            {_onnx_lstm("0")}
            hh = Concat <axis = 1> (h0n, h1_in)
            q1 = MatMul (hh, R1)
            a1 = Add (q1, b1)
            {_onnx_lstm("1")}
            v = MatMul (h1n, V)
            logits = Add (v, bv)
            m = ArgMax <axis = 1, keepdims = 0> (logits)
            next = Cast <to = 6> (m)"""

    def onnx_states(self, suffix: str = "") -> str:
        """The types and names of the states."""
        return ", ".join(f"float[1,{self.hidden}] {state}{suffix}" for state in STATES)

    def torch_step(self, torch: Any) -> Callable[[Any, Any], tuple[Any, Any]]:
        """A step in PyTorch."""
        tensor = torch.from_numpy
        embedding, head, bias = tensor(self.embedding), *map(tensor, self.head)
        cells = [torch.nn.LSTMCell(self.hidden, self.hidden) for _ in range(2)]
        for layer, cell in enumerate(cells):
            for parameter, array in zip(cell.parameters(), self.lstm.weights(layer, 0), strict=True):
                parameter.data = tensor(array.reshape(parameter.shape))

        def step(token: Any, states: Any) -> tuple[Any, Any]:
            first = cells[0](embedding[token], states[:2])
            second = cells[1](first[0], states[2:])
            logits = torch.nn.functional.linear(second[0], head, bias)
            return logits.argmax(-1).to(torch.int32), (*first, *second)

        return step


@dataclass(frozen=True)
class Generate(CharRnn):
    """One network generates the whole text."""

    floors = {"expert": 1.05, "peer": 0.85}

    @property
    def name(self) -> str:
        return f"W2 char-RNN {self.hidden} one network"

    def network(self) -> trt.INetworkDefinition:
        script = Script()
        first = [script.input(name, array) for name, array in self.inputs().items()]
        loop = script.counted(self.length)
        recurrences = [loop.add_recurrence(tensor) for tensor in first]
        token, *states = (recurrence.outputs[0] for recurrence in recurrences)
        following, after = self.add_step(script, token, states)
        for recurrence, value in zip(recurrences, [following, *after], strict=True):
            recurrence.set_input(1, value)
        return script.mark(tokens=script.stack(loop, following, self.length))

    def idiomatic(self) -> Jax:
        return Jax(self.scan(self.plain_step), self.plain_weights())

    def expert(self) -> Jax:
        return Jax(self.scan(self.fast_step), self.packed(self.lstm.scale()))

    def scan(self, step: Callable[[Any, Any, Any], tuple[Any, Any]]) -> Callable[[Any, Any], Any]:
        """All steps."""

        def function(weights: Any, inputs: Any) -> Any:
            def body(carry: Any, _: None) -> Any:
                carry = step(weights, *carry)
                return carry, carry[0]

            first = inputs["token"], tuple(inputs[state] for state in STATES)
            return {"tokens": lax.scan(body, first, length=self.length)[1]}

        return function

    def models(self) -> Mapping[str, Callable[[], ModelProto]]:
        return {"loop": self.loop_model}

    def loop_model(self) -> ModelProto:
        """A Loop over packed gates."""
        lasts = ", ".join(f"{state}_last" for state in STATES)
        text = f"""
        char_rnn (int32[1] token, {self.onnx_states()}) => (int32[{self.length},1] tokens) {{
            last, {lasts}, tokens = Loop <body = step (
                int64 i, bool go_on, int32[1] token_in, {self.onnx_states("_in")}
            ) => (bool go_on2, int32[1] next, {self.onnx_states("n")}, int32[1] out) {{
                go_on2 = Identity (go_on)
                {self.onnx_step()}
                out = Identity (next)
            }}> (trips, yes, token, {", ".join(STATES)})
        }}"""
        arrays = {"trips": np.array(self.length, np.int64), "yes": np.array(True)}
        return onnx_model(text, {**self.onnx_weights(), **arrays})

    def torch(self, torch: Any) -> Call:
        step = self.torch_step(torch)

        def call(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            carry = inputs["token"], tuple(inputs[state] for state in STATES)
            tokens: list[Any] = []
            for _ in range(self.length):
                carry = step(*carry)
                tokens.append(carry[0])
            return {"tokens": torch.stack(tokens)}

        return call


@dataclass(frozen=True)
class Steps(CharRnn):
    """A network for one step, called for each character; its states stay in arrays of the system."""

    floors = {"expert": 1.1, "peer": 1.1}
    feeds_back = True

    @property
    def name(self) -> str:
        return f"W2 char-RNN {self.hidden} one step a call"

    def drive(self, call: Call, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        tokens: list[Any] = []
        for _ in range(self.length):
            outputs = call(inputs)
            inputs = {"token": outputs["next"], **{state: outputs[f"{state}n"] for state in STATES}}
            tokens.append(inputs["token"])
        return {"tokens": tokens}

    def network(self) -> trt.INetworkDefinition:
        script = Script()
        token, *states = (script.input(name, array) for name, array in self.inputs().items())
        following, after = self.add_step(script, token, states)
        return script.mark(next=following, **dict(zip((f"{state}n" for state in STATES), after, strict=True)))

    def idiomatic(self) -> Jax:
        return Jax(self.once(self.plain_step), self.plain_weights())

    def expert(self) -> Jax:
        return Jax(self.once(self.fast_step), self.packed(self.lstm.scale()))

    def once(self, step: Callable[[Any, Any, Any], tuple[Any, Any]]) -> Callable[[Any, Any], Any]:
        """One step, from and to names."""

        def function(weights: Any, inputs: Any) -> Any:
            following, after = step(weights, inputs["token"], tuple(inputs[state] for state in STATES))
            return {"next": following, **dict(zip((f"{state}n" for state in STATES), after, strict=True))}

        return function

    def models(self) -> Mapping[str, Callable[[], ModelProto]]:
        return {"step": self.step_model}

    def step_model(self) -> ModelProto:
        """A step over packed gates."""
        step = self.onnx_step().replace("_in", "")
        outputs = f"int32[1] next, {self.onnx_states('n')}"
        text = f"char_rnn (int32[1] token, {self.onnx_states()}) => ({outputs}) {{ {step} }}"
        return onnx_model(text, self.onnx_weights())

    def torch(self, torch: Any) -> Call:
        step = self.torch_step(torch)

        def call(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            following, after = step(inputs["token"], tuple(inputs[state] for state in STATES))
            return {"next": following, **dict(zip((f"{state}n" for state in STATES), after, strict=True))}

        return call


def _times(x: Any, weights: Any) -> Any:
    """A product with transposed weights."""
    return lax.dot_general(x, weights, (((1,), (1,)), ((), ())))


def _lstm(gates: Any, c: Any) -> tuple[Any, Any]:
    """The state of an LSTM, from gates of which the sigmoid ones are halved."""
    i, f, g, o = jnp.split(jnp.tanh(gates), 4, -1)
    c = (0.5 * f + 0.5) * c + (0.5 * i + 0.5) * g
    return (0.5 * o + 0.5) * jnp.tanh(c), c


def _first_largest(rows: Any) -> Any:
    """Argmax of each row, in three steps that are faster in a loop."""
    most = jnp.max(rows, -1, keepdims=True)
    places = lax.broadcasted_iota(jnp.int32, rows.shape, 1)
    return jnp.min(jnp.where(rows == most, places, rows.shape[1]), -1)


def _onnx_lstm(layer: str) -> str:
    """The text of the gates of an LSTM layer, from a and c_in to hn and cn."""
    return """
            i~, f~, g~, o~ = Split <axis = 1, num_outputs = 4> (a~)
            si~ = Sigmoid (i~)
            sf~ = Sigmoid (f~)
            tg~ = Tanh (g~)
            so~ = Sigmoid (o~)
            fc~ = Mul (sf~, c~_in)
            ig~ = Mul (si~, tg~)
            c~n = Add (fc~, ig~)
            tc~ = Tanh (c~n)
            h~n = Mul (so~, tc~)""".replace("~", layer)


CASES: list[Workload] = [Generate(), Steps()]
