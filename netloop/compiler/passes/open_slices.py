"""Slices of a length that only a run knows, and the numbers that such a length is computed of."""

from netloop.compiler.passes.rewriter import operand
from netloop.model.graph import ITensor
from netloop.model.layers.pointwise import IIdentityLayer
from netloop.model.layers.rearrange import Rearrangement
from netloop.model.layers.slice import ISliceLayer
from netloop.values.dims import Dims
from netloop.values.enums import SampleMode
from netloop.values.types import UNKNOWN, normal_axis


def is_open(piece: ISliceLayer) -> bool:
    """Whether a slice with steps of 1 has one length, which is not known."""
    size = piece.inputs[2] if len(piece.inputs) > 2 else None
    if (
        size is None
        or size.type.shape != (1,)
        or size.type.ints() is not None
        or piece.mode is not SampleMode.STRICT_BOUNDS
    ):
        return False
    strides = piece.inputs[3] if len(piece.inputs) > 3 else None
    numbers = [*Dims(piece.stride)] if strides is None else strides.type.ints()
    has_axes = len(piece.inputs) <= 5 or piece.inputs[5] is None
    others = (length for axis, length in enumerate(operand(piece, 0).type.shape) if axis != sliced_axis(piece))
    return has_axes and numbers is not None and {*numbers} == {1} and UNKNOWN not in others


def sliced_axis(piece: ISliceLayer) -> int:
    """The axis of a slice along one axis."""
    return 0 if piece.axes is None else normal_axis(Dims(piece.axes)[0], operand(piece, 0).type.rank)


def moved(tensor: ITensor) -> ITensor:
    """The tensor that has the elements of another one, perhaps in another shape."""
    while isinstance(layer := tensor.producer, IIdentityLayer | Rearrangement):
        tensor = operand(layer, 0)
    return tensor
