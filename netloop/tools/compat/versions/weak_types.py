"""Layers that mix floating-point types, as the weakly typed networks of TensorRT 7 to 10 may.

TensorRT chooses the type in which such a layer computes. Here it is float32, which holds all numbers of the others: the
layer has that type as soon as a script reads it, and casts stand before it in the network that is built.
"""

from collections.abc import Container, Iterable
from dataclasses import replace

import numpy as np

import netloop
from netloop.model.graph.infer import Known, TypeTable
from netloop.model.graph.layer import ILayer
from netloop.model.graph.tensor import ITensor
from netloop.values.enums import DataType
from netloop.values.types import HALVES, TensorType

MIXING = (
    *(netloop.IConcatenationLayer, netloop.IConvolutionLayer, netloop.IDeconvolutionLayer, netloop.IEinsumLayer),
    *(netloop.IElementWiseLayer, netloop.IMatrixMultiplyLayer, netloop.INormalizationLayer),
    *(netloop.IParametricReLULayer, netloop.IScaleLayer, netloop.IScatterLayer, netloop.ISelectLayer),
    *(netloop.ISliceLayer, netloop.IRecurrenceLayer, netloop.IIfConditionalOutputLayer),
)
"""The kinds of layers whose floating-point inputs and weights must have one type in a strongly typed network."""

WIDE = np.dtype(np.float32)
LOW_BIT = (DataType.FP8, DataType.FP4)


class WeakTypes(TypeTable):
    """The types of a network whose layers may mix floating-point types."""

    def input_types(self, layer: ILayer) -> list[Known | None]:
        """The types of the inputs, halves as float32 if the layer mixes them with others."""
        types = super().input_types(layer)
        return [_widened(type_) for type_ in types] if mixes(layer, types) else types


def mixes(layer: ILayer, types: Iterable[Known | None]) -> bool:
    """Whether inputs of these types, and weights of the layer, have several floating-point types, which it refuses."""
    if not isinstance(layer, MIXING):
        return False
    inputs = [type_.dtype for type_ in types if isinstance(type_, TensorType)]
    attributes = (getattr(layer, name) for name in layer.ATTRIBUTES)
    weights = [value.dtype for value in attributes if isinstance(value, np.ndarray) and value.size]
    return len({*HALVES, WIDE}.intersection([*inputs, *weights])) > 1


def cast_mixtures(network: netloop.INetworkDefinition) -> None:
    """Cast the halves that layers mix with float32, and states that begin or go on as halves, if the network may."""
    goes_on = isinstance(network.types, WeakTypes)
    while goes_on:
        # a state that is cast may make other layers mix
        flags = [_casts(network, layer) for layer in [*network.layers]]
        goes_on = any(flags)


def _casts(network: netloop.INetworkDefinition, layer: ILayer) -> bool:
    """Cast the halves that a layer mixes with float32; whether there were any."""
    types = [None if tensor is None else network.types.of(tensor) for tensor in layer.inputs]
    halves = [index for index, type_ in enumerate(types) if _is_half(type_)] if mixes(layer, types) else []
    for index in halves:
        tensor = layer.inputs[index]
        assert tensor is not None
        layer.set_input(index, network.add_cast(tensor, DataType.FLOAT).outputs[0])
    return bool(halves)


def widen_outputs(network: netloop.INetworkDefinition, typed: Container[ITensor] = ()) -> None:
    """Add casts to FLOAT after outputs of FP8 and FP4, unless their types were set: that is the type of an output."""
    for tensor in [*network.outputs] if isinstance(network.types, WeakTypes) else ():
        if tensor.dtype in LOW_BIT and tensor.producer is not None and tensor not in typed:
            inner = tensor.producer.part_with_output(tensor.position)
            network.add_cast(inner, DataType.FLOAT).take_output(tensor)


def _is_half(type_: Known | None) -> bool:
    return isinstance(type_, TensorType) and type_.dtype in HALVES


def _widened(type_: Known | None) -> Known | None:
    if not isinstance(type_, TensorType) or not _is_half(type_):
        return type_
    value, partial = (None if array is None else array.astype(WIDE) for array in (type_.value, type_.partial))
    return replace(type_, dtype=WIDE, value=value, partial=partial)
