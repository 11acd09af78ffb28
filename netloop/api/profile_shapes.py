"""The shapes that hold for all calls within the optimization profiles of an engine."""

from collections.abc import Sequence

from netloop.api.profile import IOptimizationProfile
from netloop.model.graph import ILayer, ITensor, TypeTable
from netloop.model.layers.rearrange import IShuffleLayer
from netloop.model.layers.resample import IResizeLayer
from netloop.model.layers.slice import ISliceLayer
from netloop.model.layers.sources import IFillLayer
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import Finding
from netloop.values.types import UNKNOWN, Shape, TensorType

DIMS_INPUTS: dict[type[ILayer], int] = {IFillLayer: 0, IResizeLayer: 1, IShuffleLayer: 1, ISliceLayer: 2}
"""The input of some layers whose elements are the dims of the output."""


def types_within(network: INetworkDefinition, profiles: Sequence[IOptimizationProfile]) -> TypeTable:
    """Return the types of the tensors of a network in all calls within the profiles.

    A dim is known if a layer reads it from a shape input, and each profile has the same minimum and maximum for it.
    """
    tensor_types: dict[ITensor, TensorType] = {tensor: tensor.type for tensor in network.inputs}
    for layer in network.layers:
        source = _dims_of(layer)
        fixed = [] if source is None else _fixed(source.name, profiles)
        if any(number > 0 for number in fixed):
            inferred = TypeTable(tensor_types).of(layer.outputs[0])
            if not isinstance(inferred, Finding) and inferred.rank == len(fixed):
                tensor_types[layer.outputs[0]] = inferred.with_shape(_refined(inferred.shape, fixed))
    return TypeTable(tensor_types)


def _dims_of(layer: ILayer) -> ITensor | None:
    """The input of the network that gives the dims of a layer's output, in the order of its axes; None for others."""
    position = DIMS_INPUTS.get(type(layer))
    is_moved = isinstance(layer, IShuffleLayer) and layer.second_transpose is not None
    is_partial = isinstance(layer, ISliceLayer) and (layer.axes is not None or layer.get_input(5) is not None)
    source = None if position is None or is_moved or is_partial else layer.get_input(position)
    return source if source is not None and source.is_network_input and source.type.is_index else None


def _fixed(name: str, profiles: Sequence[IOptimizationProfile]) -> list[int]:
    """The elements of a shape input that all profiles fix; UNKNOWN for the others."""
    ranges = [profile.values().get(name) for profile in profiles]
    if not ranges or None in ranges:
        return []
    limits = [shape for found in ranges if found is not None for shape in (found.min, found.max)]
    return [entry[0] if len(set(entry)) == 1 else UNKNOWN for entry in zip(*limits, strict=False)]


def _refined(shape: Shape, fixed: Sequence[int]) -> Shape:
    """The shape with those unknown dims that are fixed; 0 and -1 mean other dims to a shuffle."""
    pairs = zip(shape, fixed, strict=True)
    return tuple(value if length == UNKNOWN and value > 0 else length for length, value in pairs)
