"""Fourier transforms, of complex numbers: real and imaginary parts along a last axis of length 2."""

from netloop.formats.from_jax.rules import EquationCall, primitive
from netloop.model.formulas import Length
from netloop.model.graph.tensor import ITensor


@primitive("fft")
def transform(call: EquationCall, x: ITensor) -> ITensor:
    """The discrete Fourier transform, its inverse, and those of real numbers, along the last axes."""
    kind, lengths = call.params["fft_type"].name, call.params["fft_lengths"]
    rank = len(call.operand(0).shape)
    axes = list(range(rank - len(lengths), rank))
    inverse = kind.startswith("I")
    if kind == "RFFT":
        x = _transformed(call, call.make.expand_dims(x, [rank]), axes.pop(), False, onesided=True)
    last = axes.pop() if kind == "IRFFT" else None
    for axis in reversed(axes):
        x = _transformed(call, x, axis, inverse)
    if last is None:
        return x
    (length,) = call.lengths(lengths[-1:])
    return call.make.squeeze(_transformed(call, x, last, True, onesided=True, length=length), [rank])


def _transformed(
    call: EquationCall, x: ITensor, axis: int, inverse: bool, *, onesided: bool = False, length: Length | None = None
) -> ITensor:
    layer = call.make.network.add_dft(x, axis, inverse, onesided)
    if length is not None:
        layer.set_input(1, call.make.scalar(call.make.tensor(length)))
    return call.make.output(layer)
