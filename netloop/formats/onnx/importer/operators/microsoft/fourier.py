"""Fourier transforms of onnxruntime (com.microsoft)."""

from netloop.formats.onnx.importer.operators.microsoft import NodeCall, microsoft
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require


def _axes(call: NodeCall, x: ITensor, behind: int) -> tuple[list[int], int]:
    """The axes of a signal before its last, and the last; ``behind`` axes follow."""
    count, rank = call.attribute("signal_ndim"), x.type.rank - behind
    require(0 < count <= rank, f"signal_ndim is {count}, but must be 1 to {rank}")
    own = call.attribute("normalized"), call.attribute("onesided")
    require(own == (0, 1), f"normalized and onesided are {own}, but must be 0 and 1")
    return list(range(rank - count, rank - 1)), rank - 1


def _transformed(call: NodeCall, x: ITensor, axis: int, inverse: bool, onesided: bool) -> ITensor:
    layer = call.make.network.add_dft(x, inverse=inverse, onesided=onesided)
    layer.axis = axis
    return call.make.output(layer)


@microsoft("Rfft")
def real_dft(call: NodeCall, x: ITensor) -> ITensor:
    """Discrete Fourier transform of real numbers along the last axes; the last one has its first half only."""
    others, last = _axes(call, x, 0)
    result = _transformed(call, call.make.expand_dims(x, [x.type.rank]), last, inverse=False, onesided=True)
    for axis in others:
        result = _transformed(call, result, axis, inverse=False, onesided=False)
    return result


@microsoft("Irfft")
def inverse_real_dft(call: NodeCall, x: ITensor) -> ITensor:
    """Inverse of ``Rfft``; the last axis has twice its length less 2."""
    others, last = _axes(call, x, 1)
    for axis in others:
        x = _transformed(call, x, axis, inverse=True, onesided=False)
    return call.make.squeeze(_transformed(call, x, last, inverse=True, onesided=True), [last + 1])
