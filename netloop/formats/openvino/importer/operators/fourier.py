"""Fourier transforms and signals.

Complex numbers are pairs along the last axis.
"""

from collections.abc import Sequence

import numpy as np

from netloop.formats.openvino.importer.operators import LayerCall, Maybe, operator
from netloop.formats.shared.spectra import centred_window, framed, overlapped
from netloop.model.graph.tensor import ITensor
from netloop.values.enums import SampleMode, UnaryOperation


@operator("DFT", "opset7")
def dft(call: LayerCall, x: ITensor, axes: ITensor, sizes: Maybe = None) -> ITensor:
    """Discrete Fourier transform along axes, cropped or zero-padded to given lengths."""
    return _transformed_along(call, x, _places(call, axes, sizes, x.type.rank - 1), inverse=False)


@operator("IDFT", "opset7")
def inverse_dft(call: LayerCall, x: ITensor, axes: ITensor, sizes: Maybe = None) -> ITensor:
    """Inverse discrete Fourier transform along axes, cropped or zero-padded to given lengths."""
    return _transformed_along(call, x, _places(call, axes, sizes, x.type.rank - 1), inverse=True)


@operator("RDFT", "opset9")
def real_dft(call: LayerCall, x: ITensor, axes: ITensor, sizes: Maybe = None) -> ITensor:
    """Discrete Fourier transform of real numbers; the last axis has its first half only."""
    *others, last = _places(call, axes, sizes, x.type.rank)
    pairs = call.make.expand_dims(x, [x.type.rank])
    return _transformed_along(
        call, _transformed(call, pairs, last, inverse=False, onesided=True), others, inverse=False
    )


@operator("IRDFT", "opset9")
def inverse_real_dft(call: LayerCall, x: ITensor, axes: ITensor, sizes: Maybe = None) -> ITensor:
    """Inverse of RDFT; the last axis has by default twice its length less 2."""
    *others, last = _places(call, axes, sizes, x.type.rank - 1)
    whole = _transformed(call, _transformed_along(call, x, others, inverse=True), last, inverse=True, onesided=True)
    return call.make.squeeze(whole, [whole.type.rank - 1])


@operator("STFT", "opset15")
def stft(call: LayerCall, x: ITensor, window: ITensor, length: ITensor, step: ITensor) -> ITensor:
    """Short-time Fourier transform of real numbers: the first half of the spectra of frames, each times a window."""
    make = call.make
    length, step = (make.cast(make.scalar(tensor), np.int64) for tensor in (length, step))
    frames = framed(make, x, x.type.rank - 1, length, step)
    frames = make.mul(frames, make.cast(centred_window(make, window, length), x.type.dtype))
    pairs = make.expand_dims(frames, [frames.type.rank])
    spectra = _transformed(call, pairs, (frames.type.rank - 1, None), inverse=False, onesided=True)
    return _exchanged(call, spectra) if call.flag("transpose_frames") else spectra


@operator("ISTFT", "opset16")
def inverse_stft(
    call: LayerCall, x: ITensor, window: ITensor, length: ITensor, step: ITensor, wanted: Maybe = None
) -> ITensor:
    """Inverse of STFT: the sum of the frames, each times the window, divided by the sum of the windows' squares."""
    make, dtype = call.make, x.type.dtype
    length, step = (make.cast(make.scalar(tensor), np.int64) for tensor in (length, step))
    spectra = _exchanged(call, x)
    axis = spectra.type.rank - 2
    frames = make.squeeze(_transformed(call, spectra, (axis, length), inverse=True, onesided=True), [axis + 1])
    if call.flag("normalized"):
        frames = make.mul(frames, make.unary(UnaryOperation.SQRT, make.cast(length, dtype)))
    weights = make.cast(centred_window(make, window, length), dtype)
    signal = overlapped(make, make.mul(frames, weights), step)
    squares = make.expand_dims(make.mul(weights, weights), [0])
    shape = make.list_tensor([make.length(frames, axis - 1), length])
    total = overlapped(make, make.broadcast_to(squares, shape), step)
    quiet = make.less(total, TINY_SUM)
    signal = make.div(signal, make.where(quiet, np.ones((), dtype), total))
    return _cut(call, signal, length, wanted)


TINY_SUM = 1e-11
"""A sum of the windows' squares below which the signal is not divided by it."""


def _exchanged(call: LayerCall, spectra: ITensor) -> ITensor:
    """Spectra with the axes of the frames and of the frequencies exchanged."""
    rank = spectra.type.rank
    return call.make.transpose(spectra, [*range(rank - 3), rank - 2, rank - 3, rank - 1])


def _cut(call: LayerCall, signal: ITensor, length: ITensor, wanted: Maybe) -> ITensor:
    """A signal without its padding on both sides, cut or extended with zeros to the length wanted."""
    make, axis = call.make, signal.type.rank - 1
    margin = make.floor_div(length, 2) if call.flag("center") else make.constant(0)
    if wanted is None:
        twice = make.mul(margin, 2)
        size = make.sub(make.tensor(make.length(signal, axis)), twice)
    else:
        size = make.cast(make.scalar(wanted), np.int64)
    return make.slice(signal, make.list_tensor([margin]), make.list_tensor([size]), [1], [axis], SampleMode.FILL)


Place = tuple[int, Maybe]
"""An axis, and its new length if that changes."""


def _places(call: LayerCall, axes: ITensor, sizes: Maybe, rank: int) -> list[Place]:
    along = call.known_axes(axes, rank)
    if sizes is None:
        return [(axis, None) for axis in along]
    numbers = call.known_ints(sizes, "lengths")
    lengths = [None if number == -1 else call.make.constant(number) for number in numbers]
    return list(zip(along, lengths, strict=True))


def _transformed_along(call: LayerCall, x: ITensor, places: Sequence[Place], inverse: bool) -> ITensor:
    for place in places:
        x = _transformed(call, x, place, inverse, onesided=False)
    return x


def _transformed(call: LayerCall, x: ITensor, place: Place, inverse: bool, onesided: bool) -> ITensor:
    axis, length = place
    layer = call.make.network.add_dft(x, axis, inverse, onesided)
    if length is not None:
        layer.set_input(1, length)
    return call.make.output(layer)
