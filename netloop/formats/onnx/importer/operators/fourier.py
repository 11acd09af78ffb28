"""Fourier transforms and signals."""

import math

import numpy as np

from netloop.formats.onnx.importer.operators import Maybe, NodeCall, operator
from netloop.formats.onnx.tensors import element_type
from netloop.formats.shared.spectra import framed
from netloop.model.formulas import FormulaBuilder
from netloop.model.graph.tensor import ITensor
from netloop.values.enums import UnaryOperation


@operator("DFT", since=(17, 20))
def dft(call: NodeCall, x: ITensor, length: Maybe = None, axis: Maybe = None) -> ITensor:
    """Discrete Fourier transform along an axis."""
    return _transformed(call, x, length, call.make.constant(call.attribute("axis", -2)) if axis is None else axis)


def _transformed(call: NodeCall, x: ITensor, length: Maybe, axis: ITensor) -> ITensor:
    make, axis = call.make, call.make.scalar(axis)
    axes = make.ints(axis)
    layer = make.network.add_dft(x, inverse=call.flag("inverse"), onesided=call.flag("onesided"))
    if length is not None:
        layer.set_input(1, make.scalar(length))
    if axes is None:
        layer.set_input(2, axis)
    else:
        (layer.axis,) = axes
    return make.output(layer)


@operator("STFT", since=17)
def stft(call: NodeCall, x: ITensor, step: ITensor, window: Maybe = None, length: Maybe = None) -> ITensor:
    """Short-time Fourier transform: the spectra of frames, each times a window."""
    make = call.make
    if x.type.rank == 2:  # PyTorch leaves out the last axis of real signals, which onnxruntime allows
        x = make.expand_dims(x, [2])
    signal = make.tensor(make.length(x, 1))
    if length is None:
        length = signal if window is None else make.tensor(make.length(window, 0))
    frame = framed(make, x, 1, make.scalar(length), make.scalar(step))
    if window is not None:
        frame = make.mul(frame, make.expand_dims(make.cast(window, x.type.dtype), [1]))
    return _transformed(call, frame, None, make.constant(2))


@operator("MelWeightMatrix", since=17)
def mel_weights(
    call: NodeCall, bands: ITensor, length: ITensor, rate: ITensor, lowest: ITensor, highest: ITensor
) -> ITensor:
    """Mel filter bank: weights from DFT bins to mel bands."""
    make = call.make
    bands, length = (make.cast(make.scalar(tensor), np.int64) for tensor in (bands, length))
    low, high = (_mel(make, make.cast(make.scalar(tensor), np.float64)) for tensor in (lowest, highest))
    step = make.div(make.sub(high, low), make.cast(make.add(bands, 2), np.float64))
    mels = make.add(make.mul(make.cast(make.arange(make.add(bands, 2)), np.float64), step), low)
    hertz = make.mul(make.sub(make.unary(UnaryOperation.EXP, make.mul(mels, math.log(10) / 2595)), 1.0), 700.0)
    numerators = make.mul(make.cast(make.add(length, 1), np.float64), hertz)
    edges = make.unary(UnaryOperation.FLOOR, make.div(numerators, make.cast(make.scalar(rate), np.float64)))
    start, peak, end = (make.slice(edges, [first], [bands]) for first in range(3))
    bins = make.expand_dims(make.cast(make.arange(make.add(make.floor_div(length, 2), 1)), np.float64), [1])
    rising = make.div(make.sub(bins, start), make.sub(peak, start))
    falling = make.div(make.sub(end, bins), make.sub(end, peak))
    before = make.logical_and(make.greater_equal(bins, start), make.less(bins, peak))
    after = make.logical_and(make.greater(bins, peak), make.less(bins, end))
    slopes = make.where(before, rising, make.where(after, falling, np.zeros(())))
    weights = make.where(make.equal(bins, peak), np.ones(()), slopes)
    return make.cast(weights, element_type(call.attribute("output_datatype")))


def _mel(make: FormulaBuilder, hertz: ITensor) -> ITensor:
    """Hertz to mel."""
    return make.mul(make.unary(UnaryOperation.LOG, make.add(make.div(hertz, 700.0), 1.0)), 2595 / math.log(10))
