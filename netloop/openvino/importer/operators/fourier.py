"""Fourier transforms and signals.

Complex numbers are pairs along the last axis.
"""

from collections.abc import Sequence

from netloop.graph.tensor import ITensor
from netloop.openvino.importer.call import Call
from netloop.openvino.importer.operator_table import operator


@operator("DFT", "opset7")
def dft(call: Call, x: ITensor, axes: ITensor, sizes: ITensor | None = None) -> ITensor:
    """Discrete Fourier transform along axes, cropped or zero-padded to given lengths."""
    return _transformed_along(call, x, _places(call, axes, sizes, x.type.rank - 1), inverse=False)


@operator("IDFT", "opset7")
def inverse_dft(call: Call, x: ITensor, axes: ITensor, sizes: ITensor | None = None) -> ITensor:
    """Inverse discrete Fourier transform along axes, cropped or zero-padded to given lengths."""
    return _transformed_along(call, x, _places(call, axes, sizes, x.type.rank - 1), inverse=True)


@operator("RDFT", "opset9")
def real_dft(call: Call, x: ITensor, axes: ITensor, sizes: ITensor | None = None) -> ITensor:
    """Discrete Fourier transform of real numbers; the last axis has its first half only."""
    *others, last = _places(call, axes, sizes, x.type.rank)
    pairs = call.make.expand_dims(x, [x.type.rank])
    return _transformed_along(
        call, _transformed(call, pairs, last, inverse=False, onesided=True), others, inverse=False
    )


@operator("IRDFT", "opset9")
def inverse_real_dft(call: Call, x: ITensor, axes: ITensor, sizes: ITensor | None = None) -> ITensor:
    """Inverse of RDFT; the last axis has by default twice its length less 2."""
    *others, last = _places(call, axes, sizes, x.type.rank - 1)
    whole = _transformed(call, _transformed_along(call, x, others, inverse=True), last, inverse=True, onesided=True)
    return call.make.squeeze(whole, [whole.type.rank - 1])


Place = tuple[int, ITensor | None]
"""An axis, and its new length if that changes."""


def _places(call: Call, axes: ITensor, sizes: ITensor | None, rank: int) -> list[Place]:
    along = call.known_axes(axes, rank)
    if sizes is None:
        return [(axis, None) for axis in along]
    known = call.known_ints(sizes, "lengths")
    lengths = [None if each == -1 else call.make.constant(each) for each in known]
    return list(zip(along, lengths, strict=True))


def _transformed_along(call: Call, x: ITensor, places: Sequence[Place], inverse: bool) -> ITensor:
    for each in places:
        x = _transformed(call, x, each, inverse, onesided=False)
    return x


def _transformed(call: Call, x: ITensor, place: Place, inverse: bool, onesided: bool) -> ITensor:
    axis, length = place
    layer = call.make.network.add_dft(x, axis, inverse, onesided)
    if length is not None:
        layer.set_input(1, length)
    return call.make.made(layer)
