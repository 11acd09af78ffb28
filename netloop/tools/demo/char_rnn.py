"""A character-level language model of two LSTM layers, built as TensorRT's sampleCharRNN builds it.

Three networks share its layers: one makes a single step per call, one generates a whole text in a loop, and one reads
whole sequences, for training.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

import netloop as trt
from netloop.tools.demo.weights import BIAS, KERNEL, SOFTMAX_B, SOFTMAX_W
from netloop.tools.demo.weights import EMBEDDING as EMBEDDING
from netloop.tools.demo.weights import LAYERS as LAYERS
from netloop.tools.demo.weights import VOCABULARY as VOCABULARY
from netloop.tools.demo.weights import WEIGHTS as WEIGHTS
from netloop.tools.demo.weights import CharRnn as CharRnn
from netloop.tools.demo.weights import decode as decode
from netloop.tools.demo.weights import encode as encode
from netloop.tools.demo.weights import from_constants as from_constants
from netloop.tools.demo.weights import load as load
from netloop.tools.demo.weights import untrained as untrained


class LstmState(NamedTuple):
    """The state of an LSTM layer, or of all layers, in rows."""

    hidden: trt.ITensor
    cell: trt.ITensor


class LstmWeights(NamedTuple):
    """The weights of an LSTM layer, and its number."""

    number: int
    input_kernel: trt.ITensor
    recurrent_kernel: trt.ITensor
    input_bias: trt.ITensor
    recurrent_bias: trt.ITensor


class LstmInput(NamedTuple):
    """The input of an LSTM layer.

    Attributes:
        data: a row for each step.
        length: the number of steps.
        rows: the number of rows of its output.
    """

    data: trt.ITensor
    length: trt.ITensor
    rows: trt.ITensor


class Assembly:
    """A network of the model while it is built.

    Attributes:
        network: the network.
        model: the model.
    """

    def __init__(self, model: CharRnn, name: str) -> None:
        self.network = trt.Builder(trt.Logger()).create_network(
            1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
        )
        self.network.name = name
        self.model = model
        self._constants = model.constants()

    def constant(self, name: str) -> trt.ITensor:
        """One of the constants of the model."""
        array = self._constants[name]
        return self.output(self.network.add_constant(array.shape, array), name)

    def number(self, value: int, name: str) -> trt.ITensor:
        """An int32 scalar."""
        return self.output(self.network.add_constant((), np.array(value, np.int32)), name)

    def output(self, layer: trt.ILayer, name: str = "") -> trt.ITensor:
        """The first output of a layer; the layer may be given a name."""
        layer.name = name or layer.name
        return layer.outputs[0]

    def mark(self, **tensors: trt.ITensor) -> trt.INetworkDefinition:
        """The network, with named outputs."""
        for name, tensor in tensors.items():
            tensor.name = name
            self.network.mark_output(tensor)
        return self.network

    def reshape(self, tensor: trt.ITensor, *shape: int) -> trt.ITensor:
        """A tensor in another shape."""
        layer = self.network.add_shuffle(tensor)
        layer.reshape_dims = trt.Dims(shape)
        return self.output(layer)

    def row(self, tensor: trt.ITensor, index: trt.ITensor) -> trt.ITensor:
        """Row ``index`` of a tensor."""
        return self.output(self.network.add_gather(tensor, index, 0))

    # ------------------------------------------------------------------ LSTM

    def sum(self, a: trt.ITensor, b: trt.ITensor) -> trt.ITensor:
        """The sum of two tensors."""
        return self.output(self.network.add_elementwise(a, b, trt.ElementWiseOperation.SUM))

    def product(self, a: trt.ITensor, b: trt.ITensor) -> trt.ITensor:
        """The product of two tensors, element by element."""
        return self.output(self.network.add_elementwise(a, b, trt.ElementWiseOperation.PROD))

    def activation(self, x: trt.ITensor, kind: trt.ActivationType) -> trt.ITensor:
        """An element-wise function."""
        return self.output(self.network.add_activation(x, kind))

    def times(self, vector: trt.ITensor, kernel: trt.ITensor) -> trt.ITensor:
        """A vector times a transposed kernel."""
        vectors, transposed = trt.MatrixOperation.VECTOR, trt.MatrixOperation.TRANSPOSE
        return self.output(self.network.add_matrix_multiply(vector, vectors, kernel, transposed))

    def gate(self, gates: trt.ITensor, number: int) -> trt.ITensor:
        """One of the four gates that are computed together."""
        size = self.model.hidden
        return self.reshape(self.output(self.network.add_slice(gates, [number * size], [size], [1])), size)

    def step(self, cell: LstmWeights, x: trt.ITensor, state: LstmState) -> LstmState:
        """The state of an LSTM layer after one more step."""
        sigmoid, tanh = trt.ActivationType.SIGMOID, trt.ActivationType.TANH
        products = self.sum(self.times(x, cell.input_kernel), self.times(state.hidden, cell.recurrent_kernel))
        gates = self.sum(products, self.sum(cell.input_bias, cell.recurrent_bias))
        new = self.activation(self.gate(gates, 0), sigmoid)
        candidate = self.activation(self.gate(gates, 1), tanh)
        kept = self.activation(self.gate(gates, 2), sigmoid)
        shown = self.activation(self.gate(gates, 3), sigmoid)
        memory = self.sum(self.product(kept, state.cell), self.product(new, candidate))
        return LstmState(self.product(shown, self.activation(memory, tanh)), memory)

    def cell(self, number: int) -> LstmWeights:
        """The weights of an LSTM layer."""
        kernel, bias = KERNEL.format(number), BIAS.format(number)
        names = (f"{kernel}_input", f"{kernel}_recurrent", f"{bias}_input", f"{bias}_recurrent")
        return LstmWeights(number, *map(self.constant, names))

    def add_lstm(self, cell: LstmWeights, steps: LstmInput, first: LstmState) -> tuple[trt.ITensor, LstmState]:
        """The hidden states of an LSTM layer after each step, a row each, and its last state."""
        loop = self.network.add_loop()
        loop.name = f"lstm{cell.number}"
        loop.add_trip_limit(steps.length, trt.TripLimit.COUNT)
        x = loop.add_iterator(steps.data).outputs[0]
        hidden, memory = loop.add_recurrence(first.hidden), loop.add_recurrence(first.cell)
        after = self.step(cell, x, LstmState(hidden.outputs[0], memory.outputs[0]))
        memory.set_input(1, after.cell)
        hidden.set_input(1, after.hidden)
        rows = loop.add_loop_output(after.hidden, trt.LoopOutput.CONCATENATE)
        rows.set_input(1, steps.rows)
        last = [
            loop.add_loop_output(recurrence.outputs[0], trt.LoopOutput.LAST_VALUE) for recurrence in (hidden, memory)
        ]
        return self.output(rows, f"lstm{cell.number}"), LstmState(*(output.outputs[0] for output in last))

    def add_lstms(self, steps: LstmInput, first: LstmState) -> tuple[trt.ITensor, list[LstmWeights], list[LstmState]]:
        """All LSTM layers, each reading the one before: the rows of the last one, all weights and all last states."""
        data, cells, states = steps.data, list[LstmWeights](), list[LstmState]()
        for number in range(LAYERS):
            index = self.number(number, f"layer{number}")
            begin = LstmState(self.row(first.hidden, index), self.row(first.cell, index))
            cells.append(self.cell(number))
            data, last = self.add_lstm(cells[-1], steps._replace(data=data), begin)
            states.append(last)
        return data, cells, states

    def stack_rows(self, vectors: Sequence[trt.ITensor]) -> trt.ITensor:
        """Vectors as the rows of a matrix."""
        layer = self.network.add_concatenation([self.reshape(vector, 1, self.model.hidden) for vector in vectors])
        layer.axis = 0
        return self.output(layer)

    # ------------------------------------------------------------------ prediction

    def head(self) -> tuple[trt.ITensor, trt.ITensor]:
        """The weights and biases of the projection onto the characters."""
        return self.constant(SOFTMAX_W), self.constant(SOFTMAX_B)

    def logits(self, head: tuple[trt.ITensor, trt.ITensor], rows: trt.ITensor) -> trt.ITensor:
        """A column for each row: the logarithms of the probabilities of the next character, up to a constant."""
        weights, bias = head
        none, transposed = trt.MatrixOperation.NONE, trt.MatrixOperation.TRANSPOSE
        return self.sum(self.output(self.network.add_matrix_multiply(weights, none, rows, transposed)), bias)

    def likeliest(self, logits: trt.ITensor) -> trt.ITensor:
        """The id of the most likely next character."""
        largest = trt.TopKOperation.MAX
        layer = self.network.add_topk(logits, largest, 1, 1 << 0, trt.int32)
        return layer.outputs[1]


# ---------------------------------------------------------------------- the three networks


def step_network(model: CharRnn) -> trt.INetworkDefinition:
    """Return the network of sampleCharRNN, which makes one step at a time.

    Inputs: ``data`` [1, width], the vector of a character; ``hiddenIn`` and ``cellIn`` [2, hidden], the states;
    ``seqLen`` [], the number of steps, which is 1. Outputs: ``hiddenOut``, ``cellOut``; ``pred`` [1, 1], the id of
    the next character.
    """
    make = Assembly(model, "char_rnn_step")
    data = make.network.add_input("data", trt.float32, (1, model.width))
    first = _state_inputs(make)
    length = make.network.add_input("seqLen", trt.int32, ())
    rows, _, last = make.add_lstms(LstmInput(data, length, make.number(1, "maxSeqSize")), first)
    hidden, cell = _stacked(make, last)
    return make.mark(hiddenOut=hidden, cellOut=cell, pred=make.likeliest(make.logits(make.head(), rows)))


def training_network(model: CharRnn, length: int) -> trt.INetworkDefinition:
    """Return a network of the same layers over a whole sequence.

    Inputs: ``ids`` [length]; ``hiddenIn`` and ``cellIn`` [2, hidden]. Outputs: ``logits`` [length, 65], for the
    character after each of the sequence; ``hiddenOut``, ``cellOut``.
    """
    make = Assembly(model, "char_rnn_training")
    ids = make.network.add_input("ids", trt.int32, (length,))
    first = _state_inputs(make)
    steps = make.number(length, "length")
    rows, _, last = make.add_lstms(LstmInput(make.row(make.constant(EMBEDDING), ids), steps, steps), first)
    by_row = make.network.add_shuffle(make.logits(make.head(), rows))
    by_row.first_transpose = trt.Permutation((1, 0))
    hidden, cell = _stacked(make, last)
    return make.mark(logits=make.output(by_row), hiddenOut=hidden, cellOut=cell)


def generating_network(model: CharRnn) -> trt.INetworkDefinition:
    """Return a network of the same layers and a loop that continues a text.

    Inputs: ``seed`` [-1], the ids of a text; ``count`` [], the number of characters to add. Output: ``generated``
    [count].
    """
    make = Assembly(model, "char_rnn_generating")
    seed = make.network.add_input("seed", trt.int32, (-1,))
    count = make.network.add_input("count", trt.int32, ())
    embedding = make.constant(EMBEDDING)
    length = make.reshape(make.output(make.network.add_shape(seed)))
    zeros = make.output(
        make.network.add_constant((LAYERS, model.hidden), np.zeros((LAYERS, model.hidden), np.float32)), "zeros"
    )
    _, cells, states = make.add_lstms(LstmInput(make.row(embedding, seed), length, length), LstmState(zeros, zeros))
    head = make.head()

    def next_id(hidden: trt.ITensor) -> trt.ITensor:
        return make.reshape(make.likeliest(make.logits(head, make.reshape(hidden, 1, model.hidden))))

    loop = make.network.add_loop()
    loop.name = "generate"
    loop.add_trip_limit(count, trt.TripLimit.COUNT)
    character = loop.add_recurrence(next_id(states[-1].hidden))
    x = make.row(embedding, character.outputs[0])
    for cell, first in zip(cells, states, strict=True):
        recurrences = [loop.add_recurrence(tensor) for tensor in first]
        after = make.step(cell, x, LstmState(*(recurrence.outputs[0] for recurrence in recurrences)))
        for recurrence, value in zip(recurrences, after, strict=True):
            recurrence.set_input(1, value)
        x = after.hidden
    character.set_input(1, next_id(x))
    generated = loop.add_loop_output(character.outputs[0], trt.LoopOutput.CONCATENATE)
    generated.set_input(1, count)
    return make.mark(generated=make.output(generated))


def _state_inputs(make: Assembly) -> LstmState:
    shape = (LAYERS, make.model.hidden)
    return LstmState(*(make.network.add_input(name, trt.float32, shape) for name in ("hiddenIn", "cellIn")))


def _stacked(make: Assembly, states: Sequence[LstmState]) -> LstmState:
    return LstmState(*(make.stack_rows(entry) for entry in zip(*states, strict=True)))
