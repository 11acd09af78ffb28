"""Random recurrent layers as networks, with what they compute in float64 by numpy."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import netloop as trt
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.loop import IIteratorLayer
from netloop.values.types import Array
from tests.support.networks import CONCATENATE, Op, combine, constant, counted, last, mark, stacked

PLAIN, TRANSPOSE, VECTOR = trt.MatrixOperation.NONE, trt.MatrixOperation.TRANSPOSE, trt.MatrixOperation.VECTOR
Kind = trt.ActivationType

ACTIVATIONS: dict[Kind, Callable[[Array, float, float], Array]] = {
    Kind.SIGMOID: lambda x, a, b: 1 / (1 + np.exp(-x)),
    Kind.TANH: lambda x, a, b: np.tanh(x),
    Kind.RELU: lambda x, a, b: np.maximum(x, 0),
    Kind.LEAKY_RELU: lambda x, a, b: np.where(x >= 0, x, a * x),
    Kind.THRESHOLDED_RELU: lambda x, a, b: np.where(x > a, x, 0),
    Kind.CLIP: lambda x, a, b: np.clip(x, a, b),
    Kind.HARD_SIGMOID: lambda x, a, b: np.clip(a * x + b, 0, 1),
    Kind.SCALED_TANH: lambda x, a, b: a * np.tanh(b * x),
    Kind.SOFTSIGN: lambda x, a, b: x / (1 + np.abs(x)),
}
"""The activations of kernels in float64."""
NUMBERS = {
    Kind.LEAKY_RELU: (0.25, 0.0),
    Kind.THRESHOLDED_RELU: (0.125, 0.0),
    Kind.CLIP: (-0.75, 0.5),
    Kind.HARD_SIGMOID: (0.25, 0.5),
    Kind.SCALED_TANH: (1.5, 0.5),
}
"""Their parameters."""


class Pair:
    """A tensor of a network, and a function that computes it."""

    def __init__(self, tensor: ITensor, compute: Callable[[dict[Any, Array]], Array]) -> None:
        self.tensor, self.compute = tensor, compute


@dataclass
class Layer:
    """A layer.

    Attributes:
        network: the network.
        inputs: random inputs.
        wanted: its outputs in float64.
    """

    network: trt.INetworkDefinition
    inputs: Mapping[str, np.ndarray]
    wanted: Mapping[str, np.ndarray]


class RecurrentLayer:
    """A random layer: an RNN, a GRU of one of the two forms or an LSTM with or without peepholes.

    Args:
        seed: the seed.
        units: the lengths of states to choose from.
        rows: the numbers of rows to choose from.
        weight_type: the type to which weights are rounded by which states, and what follows from them, are multiplied.
    """

    def __init__(
        self,
        seed: int,
        units: Sequence[int] = (16, 23, 32, 50),
        rows: Sequence[int] = (1, 2, 5, 8, 13, 17),
        weight_type: Any = np.float32,
    ) -> None:
        self.weight_type = weight_type
        self.random = np.random.default_rng(seed)
        self.network = trt.INetworkDefinition()
        self.units, self.rows = self.one(units), self.one(rows)
        self.width, self.trips = int(self.random.integers(1, 20)), int(self.random.integers(1, 6))
        self.is_vector = self.rows == 1 and self.chance(0.5)
        self.shape = (self.units,) if self.is_vector else (self.rows, self.units)
        self.joins, self.is_transposed = self.chance(0.5), self.chance(0.5)
        self.is_left = self.is_vector and self.chance(0.5)

    def one(self, choices: Sequence[Any]) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def chance(self, part: float) -> bool:
        return bool(self.random.random() < part)

    def drawn(self, *shape: int) -> np.ndarray:
        return (self.random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    # ------------------------------------------------------------------ layers

    def combined(self, a: Pair, b: Pair, op: trt.ElementWiseOperation, function: Any) -> Pair:
        tensor = combine(self.network, a.tensor, b.tensor, op)
        return Pair(tensor, lambda values: function(a.compute(values), b.compute(values)))

    def sum(self, a: Pair, b: Pair) -> Pair:
        return self.combined(a, b, Op.SUM, np.add)

    def prod(self, a: Pair, b: Pair) -> Pair:
        return self.combined(a, b, Op.PROD, np.multiply)

    def fixed(self, *shape: int) -> Pair:
        array = self.drawn(*shape)
        return Pair(constant(self.network, array), lambda values: array.astype(np.float64))

    def row(self, count: int = 1) -> Pair:
        """Numbers that are the same in all rows."""
        size = self.units * count
        return self.fixed(size) if self.is_vector else self.fixed(1, size)

    def activated(self, x: Pair, kind: Kind) -> Pair:
        layer = self.network.add_activation(x.tensor, kind)
        layer.alpha, layer.beta = NUMBERS.get(kind, (0.0, 0.0))
        return Pair(layer.get_output(0), lambda values: ACTIVATIONS[kind](x.compute(values), layer.alpha, layer.beta))

    def product(self, x: Pair, depth: int, count: int) -> Pair:
        """The product of a row and random weights for some gates."""
        array = self.drawn(depth, count * self.units)
        matrix = constant(self.network, array.T if self.is_transposed else array)
        op = TRANSPOSE if self.is_transposed else PLAIN
        if self.is_left:
            other = PLAIN if self.is_transposed else TRANSPOSE
            layer = self.network.add_matrix_multiply(matrix, other, x.tensor, VECTOR)
        else:
            layer = self.network.add_matrix_multiply(x.tensor, VECTOR if self.is_vector else PLAIN, matrix, op)
        is_of_state = not isinstance(x.tensor.producer, IIteratorLayer)
        exact = array.astype(self.weight_type if is_of_state else np.float32).astype(np.float64)
        return Pair(layer.get_output(0), lambda values: x.compute(values) @ exact)

    def products(self, x: Pair, depth: int, count: int) -> list[Pair]:
        """The products of a row for some gates, one or joined."""
        if not self.joins:
            return [self.product(x, depth, 1) for _ in range(count)]
        whole = self.product(x, depth, count)
        return [self.part(whole, number) for number in range(count)]

    def part(self, x: Pair, number: int) -> Pair:
        start = number * self.units
        layer = self.network.add_slice(x.tensor, (start,), (self.units,), (1,))
        layer.axes = trt.Dims((len(self.shape) - 1,))
        return Pair(layer.get_output(0), lambda values: x.compute(values)[..., start : start + self.units])

    def gates(self, x: Pair, h: Pair, count: int) -> list[Pair]:
        sums = map(self.sum, self.products(x, self.width, count), self.products(h, self.units, count))
        biases = [self.row() for _ in range(count)] if self.chance(0.7) else []
        return [self.sum(gate, bias) for gate, bias in zip(sums, biases, strict=True)] if biases else list(sums)

    # ------------------------------------------------------------------ cells

    def rnn(self, x: Pair, states: list[Pair]) -> list[Pair]:
        (gate,) = self.gates(x, states[0], 1)
        return [self.activated(gate, self.one(list(ACTIVATIONS)))]

    def gru(self, x: Pair, states: list[Pair]) -> list[Pair]:
        (h,) = states
        if self.chance(0.5):
            (xr, xz, xn), (hr, hz, hn) = self.products(x, self.width, 3), self.products(h, self.units, 3)
            r, z = (self.activated(self.sum(a, b), Kind.SIGMOID) for a, b in ((xr, hr), (xz, hz)))
            n = self.sum(xn, self.prod(r, self.sum(hn, self.row())))
        else:
            r, z = (self.activated(gate, Kind.SIGMOID) for gate in self.gates(x, h, 2))
            n = self.sum(self.product(x, self.width, 1), self.product(self.prod(r, h), self.units, 1))
        n = self.activated(n, Kind.TANH)
        difference = self.combined(h, n, Op.SUB, np.subtract)
        return [self.sum(n, self.prod(z, difference))]

    def lstm(self, x: Pair, states: list[Pair]) -> list[Pair]:
        h, c = states
        i, f, g, o = self.gates(x, h, 4)
        has_peepholes, clips = self.chance(0.4), self.chance(0.3)
        if has_peepholes:
            i, f = (self.sum(gate, self.prod(c, self.row())) for gate in (i, f))
        i, f = self.activated(i, Kind.SIGMOID), self.activated(f, Kind.SIGMOID)
        g = self.activated(self.activated(g, Kind.CLIP) if clips else g, Kind.TANH)
        c = self.sum(self.prod(f, c), self.prod(i, g))
        o = self.activated(self.sum(o, self.prod(c, self.row())) if has_peepholes else o, Kind.SIGMOID)
        return [self.prod(o, self.activated(c, self.one([Kind.TANH, Kind.SOFTSIGN]))), c]

    # ------------------------------------------------------------------ the loop

    def made(self) -> Layer:
        """The layer with all of its outputs."""
        network, cell = self.network, self.one([self.rnn, self.gru, self.lstm])
        axis = 0 if self.is_vector else self.one([0, 1])
        reverse = self.chance(0.3)
        shape = [*self.shape[:-1], self.width]
        inputs = {"x": self.drawn(*shape[:axis], self.trips, *shape[axis:])}
        loop = counted(network, self.trips)
        iterator = loop.add_iterator(network.add_input("x", trt.float32, inputs["x"].shape), axis, reverse)
        x = Pair(iterator.get_output(0), lambda values: values["x"])
        states: list[Pair] = []
        for number in range(2 if cell == self.lstm else 1):
            name = f"before{number}"
            inputs[name] = self.drawn(*self.shape)
            layer = loop.add_recurrence(network.add_input(name, trt.float32, self.shape))
            states.append(Pair(layer.get_output(0), lambda values, name=name: values[name]))
        after = cell(x, states)
        for state, value in zip(states, after, strict=True):
            assert state.tensor.producer is not None
            state.tensor.producer.set_input(1, value.tensor)
        kind = self.one([CONCATENATE, trt.LoopOutput.REVERSE])
        to = self.one(range(len(self.shape) + 1)) if self.chance(0.3) else 0
        rows = stacked(loop, after[0].tensor, constant(network, self.trips, np.int32), kind, to)
        mark(network, y=rows, **{f"last{number}": last(loop, state.tensor) for number, state in enumerate(states)})
        return Layer(network, inputs, self.results(inputs, axis, reverse, kind, to, after))

    def step(self) -> Layer:
        """One step of the layer, from states to states, without a loop."""
        network, cell = self.network, self.one([self.rnn, self.gru, self.lstm])
        inputs = {"x": self.drawn(*self.shape[:-1], self.width)}
        inputs |= {f"before{number}": self.drawn(*self.shape) for number in range(2 if cell == self.lstm else 1)}
        x, *states = (
            Pair(network.add_input(name, trt.float32, array.shape), lambda values, name=name: values[name])
            for name, array in inputs.items()
        )
        after = cell(x, states)
        mark(network, **{f"after{number}": value.tensor for number, value in enumerate(after)})
        values: dict[Any, Array] = {name: array.astype(np.float64) for name, array in inputs.items()}
        return Layer(network, inputs, {f"after{number}": value.compute(values) for number, value in enumerate(after)})

    def results(
        self, inputs: Mapping[str, np.ndarray], axis: int, reverse: bool, kind: Any, to: int, after: Sequence[Pair]
    ) -> dict[str, np.ndarray]:
        values: dict[Any, Array] = {name: array.astype(np.float64) for name, array in inputs.items()}
        rows = np.moveaxis(values["x"], axis, 0)
        stack: list[Array] = []
        for row in rows[::-1] if reverse else rows:
            values["x"] = row
            results = [value.compute(values) for value in after]
            values.update({f"before{number}": result for number, result in enumerate(results)})
            stack.append(results[0])
        y = np.stack(stack if kind is CONCATENATE else stack[::-1], to)
        return {"y": y, **{f"last{number}": values[f"before{number}"] for number in range(len(after))}}


def recurrent_layer(seed: int, **choices: Any) -> Layer:
    """The random layer of a seed."""
    return RecurrentLayer(seed, **choices).made()


def recurrent_step(seed: int, **choices: Any) -> Layer:
    """One step of the random layer of a seed."""
    return RecurrentLayer(seed, **choices).step()
