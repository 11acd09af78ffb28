"""The recurrent layer of TensorRT 7 and 8, as loops of the network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from netloop.formats.shared.recurrent import scan_cell
from netloop.formats.shared.recurrent_cells import Cell, GruCell, LstmCell, RnnCell
from netloop.model.formulas import FormulaBuilder
from netloop.model.graph.attributes import check_instance, check_member
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.pointwise import IIdentityLayer
from netloop.model.network import INetworkDefinition
from netloop.model.weights import weights_array
from netloop.tools.compat.versions.enumerations import (
    LayerType,
    RNNDirection,
    RNNGateType,
    RNNInputMode,
    RNNOperation,
)
from netloop.values.checked_attributes import CheckedAttributes, whole
from netloop.values.diagnostics import Finding, NetworkError, reason
from netloop.values.enums import ActivationType, DataType
from netloop.values.types import UNKNOWN, Array, agree

_G = RNNGateType

CELLS: dict[RNNOperation, tuple[type[Cell], tuple[RNNGateType, ...], tuple[ActivationType, ...]]] = {
    RNNOperation.RELU: (RnnCell, (_G.INPUT,), (ActivationType.RELU,)),
    RNNOperation.TANH: (RnnCell, (_G.INPUT,), (ActivationType.TANH,)),
    RNNOperation.GRU: (GruCell, (_G.UPDATE, _G.RESET, _G.HIDDEN), (ActivationType.SIGMOID, ActivationType.TANH)),
    RNNOperation.LSTM: (
        LstmCell,
        (_G.INPUT, _G.OUTPUT, _G.FORGET, _G.CELL),
        (ActivationType.SIGMOID, ActivationType.TANH, ActivationType.TANH),
    ),
}
"""The cell of each operation, its gates in the order of their weights, and its activation functions."""

Key = tuple[int, RNNGateType, bool]


class IRNNv2Layer(CheckedAttributes):
    """A recurrent layer, of which each layer and direction is a loop of the network.

    ::

        RELU, TANH   H' = f(W X + Wb + R H + Rb)                                 f is relu or tanh
        LSTM         i, f, o = sigmoid(W X + Wb + R H + Rb)    c = tanh(W X + Wb + R H + Rb), each with its own weights
                     C' = f C + i c                            H' = o tanh(C')
        GRU          z, r = sigmoid(W X + Wb + R H + Rb)       h = tanh(W X + Wb + r (R H + Rb))
                     H' = (1 - z) h + z H

    Input [.., steps, length]; output 0 is [.., steps, H], the hidden states of the last layer, those of both directions
    next to each other; output 1 is [.., layers, H], the last hidden states, forward and backward in turn; output 2 is
    the same for the cell states of an LSTM. Behind the end of a sequence, output 0 is 0.

    Attributes:
        name: the name of its loops.
        precision: recorded, without effect.
        num_layers, hidden_size, max_seq_length, data_length: the number of layers, and lengths; fixed.
        op: the cell.
        direction: BIDIRECTION for a second set of layers that read from the end.
        input_mode: SKIP for no weights of the input of the first layer, whose length is that of the state then.
        seq_lengths: the lengths of the sequences, [..] of int32; None if all have all steps.
        hidden_state, cell_state: the states before the first step, [.., layers, H]; None for zeros.
    """

    name: str = ""
    precision: DataType = DataType.FLOAT
    op: RNNOperation = RNNOperation.RELU
    direction: RNNDirection = RNNDirection.UNIDIRECTION
    input_mode: RNNInputMode = RNNInputMode.LINEAR
    seq_lengths: ITensor | None = None
    hidden_state: ITensor | None = None
    cell_state: ITensor | None = None
    num_layers: int
    hidden_size: int
    max_seq_length: int
    data_length: int

    type = LayerType.RNN_V2

    def __init__(
        self,
        network: INetworkDefinition,
        input: ITensor,
        layer_count: int,
        hidden_size: int,
        max_seq_length: int,
        op: RNNOperation,
    ) -> None:
        self._network, self._input = network, check_instance("input", input, ITensor)
        _check_steps(input, max_seq_length)
        self._weights: dict[Key, Array] = {}
        self._bias: dict[Key, Array] = {}
        self._outputs: list[IIdentityLayer] = []
        self._is_stale = False
        lengths = {"num_layers": layer_count, "hidden_size": hidden_size, "max_seq_length": max_seq_length}
        own = vars(self)
        own.update((name, whole(1)(name, length)) for name, length in lengths.items())
        own["data_length"] = input.shape[-1]
        own["name"] = f"(Unnamed Layer* {network.num_layers}) [RNN]"
        self.op = check_member("op", op, RNNOperation)

    if not TYPE_CHECKING:  # as in the base class

        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value)
            if not name.startswith("_"):
                self._is_stale = True

    # ------------------------------------------------------------------ weights

    def set_weights_for_gate(self, layer_index: int, gate: RNNGateType, is_w: bool, weights: Any) -> None:
        """Set the matrix of a gate for the input (``is_w``) or the state; of two directions, layers count in pairs."""
        self._weights[layer_index, check_member("gate", gate, RNNGateType), bool(is_w)] = weights_array(weights)
        self._is_stale = True

    def get_weights_for_gate(self, layer_index: int, gate: RNNGateType, is_w: bool) -> Array:
        """The matrix of a gate; empty if none is set."""
        return self._weights.get((layer_index, gate, bool(is_w)), np.empty(0, np.float32))

    def set_bias_for_gate(self, layer_index: int, gate: RNNGateType, is_w: bool, bias: Any) -> None:
        """Set the bias of a gate for the input (``is_w``) or the state."""
        self._bias[layer_index, check_member("gate", gate, RNNGateType), bool(is_w)] = weights_array(bias)
        self._is_stale = True

    def get_bias_for_gate(self, layer_index: int, gate: RNNGateType, is_w: bool) -> Array:
        """The bias of a gate; empty if none is set."""
        return self._bias.get((layer_index, gate, bool(is_w)), np.empty(0, np.float32))

    # ------------------------------------------------------------------ outputs

    num_inputs = 1

    @property
    def num_outputs(self) -> int:
        """2, and 3 of an LSTM."""
        return 1 + CELLS[self.op][0].STATES

    def get_input(self, index: int) -> ITensor | None:
        """The input; None for any other index than 0."""
        return self._input if index == 0 else None

    def get_output(self, index: int) -> ITensor | None:
        """Output ``index``; None if there is none.

        Raises:
            NetworkError: weights are missing, or have another size.
        """
        if not 0 <= index < self.num_outputs:
            return None
        self.finish()
        return self._outputs[index].outputs[0]

    def set_output_type(self, index: int, dtype: DataType) -> None:
        """Recorded without effect: the layer computes in the type of its input."""

    def finish(self) -> None:
        """Add the loops to the network if the layer has changed since they were added.

        Raises:
            NetworkError: weights are missing, or have another size.
        """
        if not self._is_stale and self._outputs:
            return
        self._is_stale = False
        tensors = self._added(FormulaBuilder(self._network))
        if not self._outputs:
            self._outputs = [self._network.add_identity(tensor) for tensor in tensors]
        for identity, tensor in zip(self._outputs, tensors, strict=True):
            identity.set_input(0, tensor)

    def _added(self, make: FormulaBuilder) -> list[ITensor]:
        """The outputs of new loops; the index axes of all tensors are one axis in them."""
        *index, _, _ = self._input.shape
        sizes = [make.length(self._input, axis) for axis in range(len(index))]
        batch = make.product(sizes)
        x = make.transpose(make.reshape(self._input, [batch, *self._input.shape[-2:]]), (1, 0, 2))
        lengths = None if self.seq_lengths is None else make.flat(self.seq_lengths)
        kind, directions = CELLS[self.op][0], 2 if self.direction is RNNDirection.BIDIRECTION else 1
        initial = [
            None if state is None else make.reshape(state, [batch, self.num_layers * directions, self.hidden_size])
            for state in (self.hidden_state, self.cell_state)[: kind.STATES]
        ]
        last: list[list[ITensor]] = []
        for layer in range(self.num_layers):
            rows: list[ITensor] = []
            for direction in range(directions):
                number = layer * directions + direction
                states = [None if state is None else self._state(make, state, number) for state in initial]
                cell = self._cell(make, number, x.type.shape[2], layer == 0)
                outputs, ends = scan_cell(self.name, cell, x, states, lengths, direction == 1)
                rows.append(outputs)
                last.append(ends)
            x = make.concat(rows, 2)
        back = make.reshape(make.transpose(x, (1, 0, 2)), [*sizes, self.max_seq_length, directions * self.hidden_size])
        ends = [make.stack([states[state] for states in last], 1) for state in range(kind.STATES)]
        return [back, *(make.reshape(end, [*sizes, len(last), self.hidden_size]) for end in ends)]

    def _state(self, make: FormulaBuilder, states: ITensor, number: int) -> ITensor:
        return make.reshape(make.slice(states, [number], [1], axes=[1]), [-1, self.hidden_size])

    def _cell(self, make: FormulaBuilder, number: int, length: int, is_first: bool) -> Cell:
        kind, gates, functions = CELLS[self.op]
        skips = is_first and self.input_mode is RNNInputMode.SKIP
        hidden = self.hidden_size

        def of(kept: dict[Key, Array], is_w: bool, *shape: int) -> ITensor:
            arrays = [self._array(kept, number, gate, is_w, shape) for gate in gates]
            return make.constant(np.concatenate(arrays))

        identity = np.concatenate([np.eye(hidden, dtype=self._input.type.dtype)] * len(gates))
        return kind(
            make,
            [_activation(make, function) for function in functions],
            make.constant(identity) if skips else of(self._weights, True, hidden, length),
            of(self._weights, False, hidden, hidden),
            of(self._bias, True, hidden),
            of(self._bias, False, hidden),
            flag=kind is GruCell,
        )

    def _array(self, kept: dict[Key, Array], number: int, gate: RNNGateType, is_w: bool, shape: Sequence[int]) -> Array:
        array = kept.get((number, gate, is_w))
        what, call = ("matrix", "set_weights_for_gate") if kept is self._weights else ("bias", "set_bias_for_gate")
        of = f"the {what} of gate {gate.name} for the {'input' if is_w else 'state'} in layer {number} of {self.name!r}"
        call = f"{call}({number}, RNNGateType.{gate.name}, {is_w}, ...)"
        if array is None:
            raise NetworkError(Finding("NL677", f"{of} is missing", why=reason("NL677"), fix=f"call {call}"))
        if array.size != np.prod(shape):
            size = " x ".join(map(str, shape))
            found = f"{of} has {array.size} numbers, but must have {size}"
            raise NetworkError(Finding("NL677", found, why=reason("NL677"), fix=f"pass {size} numbers to {call}"))
        return array.reshape(shape).astype(self._input.type.dtype, copy=False)


def _check_steps(input: ITensor, steps: int) -> None:
    """Check that the last axes of the input are its steps and their elements.

    Raises:
        NetworkError: they are not.
    """
    rank, shape = input.type.rank, input.shape
    if rank < 2 or not agree(shape[-2:-1], (steps,)) or shape[-1] == UNKNOWN:
        what = f"the input of a recurrent layer is {input.type}, but must be [.., {steps}, length], with a known length"
        raise NetworkError(Finding("NL401", what, fix="set max_seq_length to the number of steps"))


def _activation(make: FormulaBuilder, kind: ActivationType) -> Callable[[ITensor], ITensor]:
    return lambda x: make.activation(kind, x)
