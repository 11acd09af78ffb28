"""Inputs with a default: constants that a call may replace, as an ONNX model's initializers that are inputs too."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from netloop.model.layers.sources import IConstantLayer
from netloop.model.network import INetworkDefinition
from netloop.values.types import data_type


def input_defaults(network: INetworkDefinition) -> dict[str, IConstantLayer]:
    """The constants that a call may replace, by the name of the input."""
    constants = (layer for layer in network.layers if isinstance(layer, IConstantLayer))
    return {
        layer.name: layer
        for layer in constants
        if layer.input_shape is not None and not layer.outputs[0].is_network_output
    }


def replaced_defaults(defaults: Collection[str], inputs: Mapping[str, Any]) -> frozenset[str]:
    """The names of the defaults that the inputs of a call replace."""
    # inputs of another type are refused by the checks of the call
    return frozenset(name for name in defaults if name in inputs) if isinstance(inputs, Mapping) else frozenset()


def with_inputs(network: INetworkDefinition, names: Iterable[str]) -> INetworkDefinition:
    """A copy of a network in which some constants are inputs, the last ones; it shares the weights.

    The constants stay in the copy, where nothing reads them, so that layers keep their numbers, by which random numbers
    are drawn.
    """
    copied = network.copy(shares_weights=True)
    defaults = input_defaults(copied)
    for name in names:
        constant = defaults[name]
        (default,) = constant.outputs
        assert constant.input_shape is not None
        new = copied.add_input(name, data_type(default.type.dtype), constant.input_shape)
        for reader, position in list(default.uses):
            reader.set_input(position, new)
        constant.input_shape = None
    return copied
