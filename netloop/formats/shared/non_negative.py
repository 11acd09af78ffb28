"""Integers that are known to be 0 or more, such as lengths: a trip count that is one needs no check."""

import numpy as np

from netloop.model.graph import ITensor, TypeTable
from netloop.model.layers.gather import IGatherLayer
from netloop.model.layers.pointwise import ICastLayer, IElementWiseLayer, ISelectLayer
from netloop.model.layers.rearrange import Rearrangement
from netloop.model.layers.sources import IShapeLayer
from netloop.values.enums import ElementWiseOperation
from netloop.values.types import INTEGERS

DEEPEST = 8
"""The most layers that are followed to see that a number is not negative."""

EXTREMES = {ElementWiseOperation.MAX: any, ElementWiseOperation.MIN: all}
MOVES = IGatherLayer | Rearrangement


def is_non_negative(tensor: ITensor, types: TypeTable, deepest: int = DEEPEST) -> bool:
    """Whether an integer is known to be 0 or more, as a length or a maximum; False after as many layers as allowed."""
    layer, value = tensor.producer, types[tensor].value
    if value is not None:
        return bool(np.all(value >= 0))
    if layer is None or deepest == 0:
        return False
    answers = (source is not None and is_non_negative(source, types, deepest - 1) for source in layer.inputs)
    if isinstance(layer, MOVES):
        return next(answers)
    if isinstance(layer, ICastLayer):
        return _keeps_sign(layer, types) and next(answers)
    if isinstance(layer, ISelectLayer):
        return list(answers)[1:] == [True, True]
    if isinstance(layer, IElementWiseLayer) and layer.op in EXTREMES:
        return EXTREMES[layer.op](answers)
    return isinstance(layer, IShapeLayer)


def _keeps_sign(layer: ICastLayer, types: TypeTable) -> bool:
    """Whether a conversion keeps an integer that is 0 or more at that: a wider type does, and int32 for a length."""
    (x,) = layer.inputs
    if x is None or types[x].dtype not in INTEGERS:
        return False
    new = types[layer.outputs[0]].dtype
    return np.can_cast(types[x].dtype, new) or (new == np.int32 and _is_length(x))


def _is_length(tensor: ITensor) -> bool:
    layer = tensor.producer
    while isinstance(layer, MOVES):
        layer = None if layer.inputs[0] is None else layer.inputs[0].producer
    return isinstance(layer, IShapeLayer)
