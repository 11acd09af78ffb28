"""Recurrent networks of onnxruntime (com.microsoft)."""

from collections.abc import Sequence

import numpy as np

from netloop.formats.onnx.importer.operators.microsoft import Maybe, NodeCall, microsoft
from netloop.formats.onnx.importer.operators.microsoft.matrix import dynamically_quantized
from netloop.formats.onnx.importer.operators.recurrent import RecurrentInputs, outputs_of_recurrent
from netloop.formats.shared.import_errors import present
from netloop.formats.shared.recurrent_cells import LstmCell
from netloop.model.formulas import FormulaBuilder
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.enums import TripLimit, UnaryOperation


class _DynamicallyQuantizedCell(LstmCell):
    """An LSTM whose inputs and states are rounded to 8 bits before they are multiplied.

    The range is that of all inputs, but that of the state of one sequence: onnxruntime takes the states of the
    sequences that one of its threads computes.
    """

    def products(self, x: ITensor) -> ITensor:
        return super().products(_rounded(self.make, x, each_row=False))

    def product(self, h: ITensor, weights: ITensor) -> ITensor:
        return super().product(_rounded(self.make, h, each_row=True), weights)


def _rounded(make: FormulaBuilder, x: ITensor, each_row: bool) -> ITensor:
    quantized, scale, zero = dynamically_quantized(make, x, each_row)
    wide = [make.cast(tensor, np.float32) for tensor in (quantized, zero)]
    return make.mul(make.sub(*wide), scale)


@microsoft("DynamicQuantizeLSTM")
def dynamic_quantize_lstm(
    call: NodeCall,
    x: ITensor,
    weights: ITensor,
    recurrent: ITensor,
    bias: Maybe,
    lengths: Maybe,
    initial: Maybe,
    initial_cell: Maybe,
    peepholes: Maybe,
    *quantization: ITensor,
) -> list[ITensor]:
    """LSTM over a sequence with quantized weights; inputs and states are quantized in each step."""
    make = call.make
    quantized = (weights, quantization[:2]), (recurrent, quantization[2:])
    weights, recurrent = (make.transpose(_dequantized(make, tensor, *by), (0, 2, 1)) for tensor, by in quantized)
    states = [initial, initial_cell]
    inputs = RecurrentInputs(x, weights, recurrent, bias, lengths, states, peepholes)
    return outputs_of_recurrent(call, _DynamicallyQuantizedCell, inputs)


def _dequantized(make: FormulaBuilder, x: ITensor, scale: ITensor, zero: ITensor) -> ITensor:
    """Weights of all directions; a scale and zero point are of a direction, or of each of its columns."""
    scale, zero = (
        make.expand_dims(tensor, [1, 2] if tensor.type.rank == 1 else [1])
        for tensor in (scale, make.cast(zero, np.float32))
    )
    return make.mul(make.sub(make.cast(x, np.float32), zero), scale)


# ---------------------------------------------------------------------------- linear attention

RULES = {"linear": (False, False), "gated": (True, False), "delta": (False, True), "gated_delta": (True, True)}
"""The values of ``update_rule``: whether the state decays, and whether a value replaces what its key gives already."""


@microsoft("LinearAttention")
def linear_attention(
    call: NodeCall,
    query: ITensor,
    key: ITensor,
    value: ITensor,
    past: Maybe = None,
    decay: Maybe = None,
    beta: Maybe = None,
) -> list[ITensor]:
    """Attention by a state: the sum of the products of keys and values, which may decay; also the last state."""
    make, heads, shared = call.make, call.attribute("q_num_heads"), call.attribute("kv_num_heads")
    require(shared > 0 and heads % shared == 0, f"q_num_heads is {heads}, but must be a multiple of {shared}")
    require(not call.attribute("state_window"), "state_window is not 0, which netloop does not support")
    decays, replaces = call.choice("update_rule", RULES)
    rows = [_by_step(make, tensor, shared, parts) for tensor, parts in ((query, heads // shared), (key, 1), (value, 1))]
    factor = _by_step(make, present(decay, "decay is left out"), shared, 1) if decays else None
    share = _by_step(make, present(beta, "beta is left out"), shared, 1) if replaces else None
    if past is None:
        lengths = [make.length(query, 0), shared, *(make.length(row, 4) for row in rows[1:])]
        past = make.full(lengths, 0, query.type.dtype)
    width = make.cast(make.tensor(make.length(rows[1], 4)), query.type.dtype)
    rows[0] = make.mul(rows[0], call.attribute("scale") or make.power(width, -0.5))
    output, last = _attended(call, rows, past, factor, share)
    batch, time = (make.length(query, axis) for axis in (0, 1))
    return [make.reshape(make.transpose(output, [1, 0, 2, 3, 4]), [batch, time, -1]), last]


def _by_step(make: FormulaBuilder, x: ITensor, heads: int, parts: int) -> ITensor:
    """[batch, step, head * part * element] as [step, batch, head, part, element]."""
    batch, time = (make.length(x, axis) for axis in (0, 1))
    return make.transpose(make.reshape(x, [batch, time, heads, parts, -1]), [1, 0, 2, 3, 4])


def _attended(
    call: NodeCall, rows: Sequence[ITensor], past: ITensor, decay: Maybe, beta: Maybe
) -> tuple[ITensor, ITensor]:
    """The loop over the steps: its outputs, [step, batch, head, part, element], and the last state."""
    make, loop = call.make, call.make.network.add_loop()
    loop.name = call.node.name
    time = make.cast(make.tensor(make.length(rows[0], 0)), np.int64)
    loop.add_trip_limit(time, TripLimit.COUNT)
    query, key, value = (loop.add_iterator(row).outputs[0] for row in rows)
    recurrence = loop.add_recurrence(past)
    state, column = recurrence.outputs[0], make.transpose(key, [0, 1, 3, 2])
    if decay is not None:
        factor = make.unary(UnaryOperation.EXP, loop.add_iterator(decay).outputs[0])
        state = make.mul(state, make.transpose(factor, [0, 1, 3, 2]))
    if beta is not None:
        value = make.mul(loop.add_iterator(beta).outputs[0], make.sub(value, make.matmul(key, state)))
    state = make.add(state, make.mul(column, value))
    recurrence.set_input(1, state)
    return make.stacked(loop, make.matmul(query, state), time), make.last(loop, recurrence)
