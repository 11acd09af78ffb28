"""Recurrent networks of onnxruntime (com.microsoft)."""

import numpy as np

from netloop.formats.recurrent_cells import LstmCell
from netloop.formulas import FormulaBuilder
from netloop.graph.tensor import ITensor
from netloop.onnx.importer.call import Call
from netloop.onnx.importer.operator_table import microsoft
from netloop.onnx.importer.operators.microsoft.matrix import dynamically_quantized
from netloop.onnx.importer.operators.recurrent import RecurrentInputs, outputs_of_recurrent


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
    wide = [make.cast(each, np.float32) for each in (quantized, zero)]
    return make.mul(make.sub(*wide), scale)


@microsoft("DynamicQuantizeLSTM")
def dynamic_quantize_lstm(
    call: Call,
    x: ITensor,
    weights: ITensor,
    recurrent: ITensor,
    bias: ITensor | None,
    lengths: ITensor | None,
    initial: ITensor | None,
    initial_cell: ITensor | None,
    peepholes: ITensor | None,
    *quantization: ITensor,
) -> list[ITensor | None]:
    """LSTM over a sequence with quantized weights; inputs and states are quantized in each step."""
    make = call.make
    given = (weights, quantization[:2]), (recurrent, quantization[2:])
    weights, recurrent = (make.transpose(_dequantized(make, each, *by), (0, 2, 1)) for each, by in given)
    states = [initial, initial_cell]
    inputs = RecurrentInputs(x, weights, recurrent, bias, lengths, states, peepholes)
    return outputs_of_recurrent(call, _DynamicallyQuantizedCell, inputs)


def _dequantized(make: FormulaBuilder, x: ITensor, scale: ITensor, zero: ITensor) -> ITensor:
    """Weights of all directions; a scale and zero point are of a direction, or of each of its columns."""
    scale, zero = (
        make.expand_dims(each, [1, 2] if each.type.rank == 1 else [1]) for each in (scale, make.cast(zero, np.float32))
    )
    return make.mul(make.sub(make.cast(x, np.float32), zero), scale)
