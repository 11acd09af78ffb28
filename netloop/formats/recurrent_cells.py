"""The cells of recurrent networks: what one step makes of its input and its states.

Each cell is given the products of its input with the input weights, bias added, its gates side by side: z, r, h of a
GRU; i, o, f, c of an LSTM.
Sources: the pages of ONNX's operators RNN, GRU and LSTM, and of OpenVINO's cells.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

from netloop.diagnostics import did_you_mean, require
from netloop.enums import ActivationType, MatrixOperation
from netloop.formulas.composer import FormulaBuilder
from netloop.graph.tensor import ITensor

Function = Callable[[ITensor], ITensor]

# fmt: off
ACTIVATIONS: dict[str, tuple[ActivationType | None, tuple[float, ...]]] = {
    "relu":            (ActivationType.RELU,             ()),
    "tanh":            (ActivationType.TANH,             ()),
    "sigmoid":         (ActivationType.SIGMOID,          ()),
    "softsign":        (ActivationType.SOFTSIGN,         ()),
    "softplus":        (ActivationType.SOFTPLUS,         ()),
    "leakyrelu":       (ActivationType.LEAKY_RELU,       (0.01,)),
    "thresholdedrelu": (ActivationType.THRESHOLDED_RELU, (1.0,)),
    "elu":             (ActivationType.ELU,              (1.0,)),
    "scaledtanh":      (ActivationType.SCALED_TANH,      (1.0, 1.0)),
    "hardsigmoid":     (ActivationType.HARD_SIGMOID,     (0.2, 0.5)),
    "affine":          (None,                            (1.0, 0.0)),
}
# fmt: on
"""The functions by their names in lower case, and the standard alpha and beta of those that have them."""


def activation_function(
    make: FormulaBuilder, name: str, alphas: Iterator[float], betas: Iterator[float], clip: float | None = None
) -> Function:
    """The function of a name, of arguments cut at plus and minus ``clip``; it takes its alpha and beta from those."""
    hint = did_you_mean(name.lower(), ACTIVATIONS)
    require(name.lower() in ACTIVATIONS, f"no activation is called {name!r}{hint and f'; {hint}'}")
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
        make: what adds layers.
        functions: its activation functions.
        weights: those of the input, a row for each row of the gates.
        recurrent: those of the state.
        bias: that of the products of the input, or None.
        recurrent_bias: that of the products of the state, or None.
        peepholes: those of an LSTM, or None.
        flag: ``linear_before_reset`` or ``input_forget``.
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
        """The next states, from the products of the input and the present states; the first is the output."""

    def products(self, x: ITensor) -> ITensor:
        """The input times its weights, with what bias can be added at once."""
        products = self.make.matmul(x, self.make.transpose(self.weights, (1, 0)))
        both = [self.bias, None if self.keeps_bias else self.recurrent_bias]
        return reduce(self.make.add, (each for each in both if each is not None), products)

    @property
    def hidden(self) -> int:
        """The size of the state."""
        return self.recurrent.type.shape[1]

    @property
    def keeps_bias(self) -> bool:
        """Whether the bias of the state cannot be added to the products of the input."""
        return False

    def product(self, h: ITensor, weights: ITensor) -> ITensor:
        """The state times its weights."""
        layer = self.make.network.add_matrix_multiply(h, MatrixOperation.NONE, weights, MatrixOperation.TRANSPOSE)
        return layer.outputs[0]

    def part(self, x: ITensor, first: int, count: int = 1) -> ITensor:
        """Some gates of several, which are side by side along the last axis."""
        start, size = first * self.hidden, count * self.hidden
        return self.make.slice(x, [start], [size], axes=[x.type.rank - 1])

    def rows(self, x: ITensor, first: int, count: int = 1) -> ITensor:
        """The weights of some gates."""
        return self.make.slice(x, [first * self.hidden], [count * self.hidden], axes=[0])


class RnnCell(Cell):
    """H = f(X W' + H R' + b)."""

    GATES = 1
    STANDARD = ("Tanh",)

    def step(self, x: ITensor, states: Sequence[ITensor]) -> list[ITensor]:
        return [self.functions[0](self.make.add(x, self.product(states[0], self.recurrent)))]


class GruCell(Cell):
    """z, r = f(...); n = g(X W' + (r H) R' + b); H = (1 - z) n + z H. The reset may come after the product."""

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
    """i, o, f = f(...); C = f C + i g(...); H = o h(C). Peepholes let the gates see C: i and f the old, o the new."""

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
            leave = f(self._sees(self.part(gates, 1), 1, cell))
        return [make.mul(leave, top(cell)), cell]

    def _gates(self, gates: ITensor, cell: ITensor) -> tuple[ITensor, ITensor | None, ITensor]:
        """What lets in, out and stay; what lets out is None if it has to see the new cell first."""
        f = self.functions[0]
        if self.peepholes is None:
            sigmoid = f(self.part(gates, 0, 3))
            return self.part(sigmoid, 0), self.part(sigmoid, 1), self.part(sigmoid, 2)
        return f(self._sees(self.part(gates, 0), 0, cell)), None, f(self._sees(self.part(gates, 2), 2, cell))

    def _sees(self, gate: ITensor, number: int, cell: ITensor) -> ITensor:
        """A gate that sees the cell through its peepholes."""
        assert self.peepholes is not None
        return self.make.add(gate, self.make.mul(self.part(self.peepholes, number), cell))
