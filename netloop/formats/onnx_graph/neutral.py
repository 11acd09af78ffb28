"""Layers whose output is one of their inputs, as the others are constants that change nothing. They get no node."""

from collections.abc import Sequence

import numpy as np

from netloop.model.graph import ILayer, ITensor, TypeTable
from netloop.model.layers.pointwise import IElementWiseLayer, ISelectLayer
from netloop.values.enums import ElementWiseOperation
from netloop.values.types import INTEGERS, TensorType

# fmt: off
NEUTRAL: dict[ElementWiseOperation, int] = {
    ElementWiseOperation.SUM: 0, ElementWiseOperation.SUB: 0, ElementWiseOperation.PROD: 1, ElementWiseOperation.DIV: 1,
    ElementWiseOperation.AND: True, ElementWiseOperation.OR: False, ElementWiseOperation.XOR: False,
}
# fmt: on
"""The operand that changes nothing."""

ONLY_SECOND = {ElementWiseOperation.SUB, ElementWiseOperation.DIV}
OF_BOOL = {ElementWiseOperation.AND, ElementWiseOperation.OR, ElementWiseOperation.XOR}
OF_INTEGERS = {ElementWiseOperation.SUM, ElementWiseOperation.SUB}
"""Operations for which 0 is not neutral in floats: the sum of -0 and 0 is 0."""


def unchanged_input(layer: ILayer, types: TypeTable) -> ITensor | None:
    """The input that the output of a layer equals, whatever its value is; None if there is none."""
    inputs = [tensor for tensor in layer.inputs if tensor is not None]
    chosen = _chosen(layer, inputs, types)
    if chosen is None or not _keeps_shape(types[chosen], [types[tensor] for tensor in inputs], types[layer.outputs[0]]):
        return None
    return chosen


def _chosen(layer: ILayer, inputs: Sequence[ITensor], types: TypeTable) -> ITensor | None:
    if isinstance(layer, ISelectLayer):
        condition, then, other = inputs
        if _is_everywhere(types[condition], True):
            return then
        return other if _is_everywhere(types[condition], False) else None
    if not isinstance(layer, IElementWiseLayer) or layer.op not in NEUTRAL or not _applies(layer, types[inputs[0]]):
        return None
    a, b = inputs
    if _is_everywhere(types[b], NEUTRAL[layer.op]):
        return a
    return b if layer.op not in ONLY_SECOND and _is_everywhere(types[a], NEUTRAL[layer.op]) else None


def _applies(layer: IElementWiseLayer, type: TensorType) -> bool:
    """Whether the neutral operand of an operation is neutral for an element type."""
    if layer.op in OF_BOOL:
        return type.is_bool
    return type.dtype in INTEGERS or layer.op not in OF_INTEGERS


def _is_everywhere(type: TensorType, number: int) -> bool:
    return type.value is not None and type.value.size > 0 and bool(np.all(type.value == number))


def _keeps_shape(chosen: TensorType, inputs: Sequence[TensorType], output: TensorType) -> bool:
    """Whether an input is not broadcast: its lengths are those of the output, or all others are 1."""
    if chosen.is_fixed and output.is_fixed:
        return chosen.shape == output.shape
    return all(set(type.shape) <= {1} for type in inputs if type is not chosen)
