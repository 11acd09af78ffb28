"""Cells of recurrent layers: one step of an RNN, GRU or LSTM, and its activation functions.

A step starts from the product of its input and the input weights, bias included, with the gates next to each other
along the last axis: z, r, h of a GRU; i, o, f, c of an LSTM.
Sources: ONNX's operators RNN, GRU and LSTM, and OpenVINO's cells.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

from netloop.formats.shared.word_tables import ACTIVATION_PARAMETERS, RECURRENT_ACTIVATIONS
from netloop.model.formulas.formula_builder import FormulaBuilder
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import did_you_mean, quoted, require
from netloop.values.enums import ActivationType, MatrixOperation

Function = Callable[[ITensor], ITensor]

ACTIVATIONS: dict[str, tuple[ActivationType | None, tuple[float, ...]]] = {
    **{
        name: (kind, tuple(ACTIVATION_PARAMETERS.get(kind, {}).values()))
        for name, kind in RECURRENT_ACTIVATIONS.onnx.read.items()
    },
    "affine": (None, (1.0, 0.0)),
}
"""The activation functions by their names in lower case, and the default alpha and beta of those that have them."""


def activation_function(
    make: FormulaBuilder, name: str, alphas: Iterator[float], betas: Iterator[float], clip: float | None = None
) -> Function:
    """The activation function ``name`` of arguments clipped to ±``clip``, with the next alpha and beta it needs."""
    hint = did_you_mean(name.lower(), ACTIVATIONS)
    require(name.lower() in ACTIVATIONS, f"no activation is called {quoted(name)}{hint and f'; {hint}'}")
    kind, defaults = ACTIVATIONS[name.lower()]
    own = [next(given, default) for given, default in zip((alphas, betas), defaults, strict=False)]
    return _function(make, kind, own, clip)


def _function(
    make: FormulaBuilder, kind: ActivationType | None, numbers: Sequence[float], clip: float | None
) -> Function:
    def limited(x: ITensor) -> ITensor:
        return x if clip is None else make.clip(x, -clip, clip)

    if kind is None:
        return lambda x: make.add(make.mul(limited(x), numbers[0]), numbers[1])
    if kind is ActivationType.SOFTPLUS:
        return lambda x: make.activation(kind, limited(x), 1.0, 1.0)
    return lambda x: make.activation(kind, limited(x), *numbers)


@dataclass(frozen=True)
class Cell(ABC):
    """A cell with its weights.

    Attributes:
        make: the builder of its layers.
        functions: its activation functions.
        weights: the weights of the input, [gates * hidden, features].
        recurrent: the weights of the state, [gates * hidden, hidden].
        bias: the bias of the input's product, or None.
        recurrent_bias: the bias of the state's product, or None.
        peepholes: the peephole weights of an LSTM, or None.
        flag: ``linear_before_reset`` of a GRU, ``input_forget`` of an LSTM.
    """

    make: FormulaBuilder
    functions: Sequence[Function]
    weights: ITensor
    recurrent: ITensor
    bias: ITensor | None = None
    recurrent_bias: ITensor | None = None
    peepholes: ITensor | None = None
    flag: bool = False

    GATES: ClassVar[int]
    STATES: ClassVar[int] = 1
    STANDARD: ClassVar[tuple[str, ...]]

    @abstractmethod
    def step(self, x: ITensor, states: Sequence[ITensor]) -> list[ITensor]:
        """The next states, from the product of the input and the present states; the first one is the output."""

    def products(self, x: ITensor) -> ITensor:
        """The product of the input and its weights, plus the biases that can be added before the loop."""
        products = self.make.matmul(x, self.make.transpose(self.weights, (1, 0)))
        both = [self.bias, None if self.keeps_bias else self.recurrent_bias]
        return reduce(self.make.add, (tensor for tensor in both if tensor is not None), products)

    @property
    def hidden(self) -> int:
        """The size of the state."""
        return self.recurrent.type.shape[1]

    @property
    def keeps_bias(self) -> bool:
        """Whether the bias of the state must not be added to the product of the input."""
        return False

    def product(self, h: ITensor, weights: ITensor) -> ITensor:
        """The product of the state and its weights."""
        layer = self.make.network.add_matrix_multiply(h, MatrixOperation.NONE, weights, MatrixOperation.TRANSPOSE)
        return layer.outputs[0]

    def part(self, x: ITensor, first: int, count: int = 1) -> ITensor:
        """``count`` gates from number ``first`` on, of those along the last axis."""
        start, size = first * self.hidden, count * self.hidden
        return self.make.slice(x, [start], [size], axes=[x.type.rank - 1])

    def rows(self, x: ITensor, first: int, count: int = 1) -> ITensor:
        """The weights of ``count`` gates from number ``first`` on."""
        return self.make.slice(x, [first * self.hidden], [count * self.hidden], axes=[0])


class RnnCell(Cell):
    """H = f(X W' + H R' + b)."""

    GATES = 1
    STANDARD = ("Tanh",)

    def step(self, x: ITensor, states: Sequence[ITensor]) -> list[ITensor]:
        return [self.functions[0](self.make.add(x, self.product(states[0], self.recurrent)))]


class GruCell(Cell):
    """z, r = f(...); n = g(X W' + (r H) R' + b); H = (1 - z) n + z H. With the flag, n = g(X W' + r (H R' + b))."""

    GATES = 3
    STANDARD = ("Sigmoid", "Tanh")

    @property
    def keeps_bias(self) -> bool:
        return self.flag

    def step(self, x: ITensor, states: Sequence[ITensor]) -> list[ITensor]:
        make, (h,), (f, g) = self.make, states, self.functions
        if self.flag:
            own = self.product(h, self.recurrent)
            own = own if self.recurrent_bias is None else make.add(own, self.recurrent_bias)
            gates = f(make.add(self.part(x, 0, 2), self.part(own, 0, 2)))
            new = g(make.add(self.part(x, 2), make.mul(self.part(gates, 1), self.part(own, 2))))
        else:
            gates = f(make.add(self.part(x, 0, 2), self.product(h, self.rows(self.recurrent, 0, 2))))
            reset = make.mul(self.part(gates, 1), h)
            new = g(make.add(self.part(x, 2), self.product(reset, self.rows(self.recurrent, 2))))
        update = self.part(gates, 0)
        return [make.add(make.mul(make.sub(1.0, update), new), make.mul(update, h))]


class LstmCell(Cell):
    """i, o, f = f(...); C = f C + i g(...); H = o h(C). Peepholes add the old C to i and f, the new C to o."""

    GATES = 4
    STATES = 2
    STANDARD = ("Sigmoid", "Tanh", "Tanh")

    def step(self, x: ITensor, states: Sequence[ITensor]) -> list[ITensor]:
        make, (h, c), (f, g, top) = self.make, states, self.functions
        gates = make.add(x, self.product(h, self.recurrent))
        new = g(self.part(gates, 3))
        enter, leave, keep = self._gates(gates, c)
        if self.flag:
            keep = make.sub(1.0, enter)
        cell = make.add(make.mul(keep, c), make.mul(enter, new))
        if leave is None:
            leave = f(self._peephole(self.part(gates, 1), 1, cell))
        return [make.mul(leave, top(cell)), cell]

    def _gates(self, gates: ITensor, cell: ITensor) -> tuple[ITensor, ITensor | None, ITensor]:
        """The input, output and forget gates; the output gate is None if it needs the new cell state first."""
        f = self.functions[0]
        if self.peepholes is None:
            sigmoid = f(self.part(gates, 0, 3))
            return self.part(sigmoid, 0), self.part(sigmoid, 1), self.part(sigmoid, 2)
        return (f(self._peephole(self.part(gates, 0), 0, cell)), None, f(self._peephole(self.part(gates, 2), 2, cell)))

    def _peephole(self, gate: ITensor, number: int, cell: ITensor) -> ITensor:
        """A gate plus the cell state times its peephole weights."""
        assert self.peepholes is not None
        return self.make.add(gate, self.make.mul(self.part(self.peepholes, number), cell))
