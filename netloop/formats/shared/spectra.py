"""Frames of signals, for the short-time Fourier transform and its inverse."""

from netloop.model.formulas.formula_builder import FormulaBuilder
from netloop.model.formulas.rearrange import Length
from netloop.model.graph.tensor import ITensor
from netloop.values.enums import ReduceOperation


def framed(make: FormulaBuilder, x: ITensor, axis: int, length: ITensor, step: ITensor) -> ITensor:
    """The frames of a signal along an axis, which becomes two: the frame, and the sample in it.

    A frame has ``length`` samples, and starts ``step`` samples after the one before; the last one ends in the signal.
    """
    rest = make.sub(make.tensor(make.length(x, axis)), length)
    count = make.maximum(make.add(make.floor_div(rest, step), 1), 0)
    return make.gather(x, _places(make, count, length, step), axis)


def overlapped(make: FormulaBuilder, frames: ITensor, step: ITensor) -> ITensor:
    """The sum of frames at their places, the inverse of cutting; [..., frame, sample] to [..., sample]."""
    rank = frames.type.rank
    count, length = (make.tensor(make.length(frames, axis)) for axis in (rank - 2, rank - 1))
    places = make.flat(_places(make, count, length, step))
    lead = [make.length(frames, axis) for axis in range(rank - 2)]
    total = make.maximum(make.add(make.mul(make.sub(count, 1), step), length), 0)
    zeros = make.full([*lead, total], 0, frames.type.dtype)
    flat = make.reshape(frames, [*lead, make.mul(count, length)])
    return make.scatter_elements(
        zeros, make.broadcast_to(places, make.shape(flat)), flat, rank - 2, ReduceOperation.SUM
    )


def centred_window(make: FormulaBuilder, window: ITensor, length: ITensor) -> ITensor:
    """A window with zeros on both sides, up to a length; of an odd number of zeros, one more behind it."""
    own = make.tensor(make.length(window, 0))
    before = make.floor_div(make.sub(length, own), 2)
    zeros = make.full([length], 0, window.type.dtype)
    return make.scatter_elements(zeros, make.add(make.arange(own), before), window, 0)


def _places(make: FormulaBuilder, count: Length, length: ITensor, step: ITensor) -> ITensor:
    """The place in the signal of each sample of each frame; [frame, sample]."""
    starts = make.mul(make.arange(count), step)
    return make.add(make.expand_dims(starts, [1]), make.arange(length))
