"""Live layers: those that an output or an assertion depends on."""

from collections.abc import Iterable

from netloop.model.graph import ILayer, NetworkBase
from netloop.model.layers.assertion import IAssertionLayer
from netloop.model.layers.conditional import IConditionLayer, IIfConditionalOutputLayer
from netloop.model.layers.loop import ILoopBoundaryLayer, ITripLimitLayer


def live_layers(network: NetworkBase, also: Iterable[ILayer] = ()) -> list[ILayer]:
    """The layers that an output, an assertion or a layer of ``also`` depends on, in the order of the network."""
    assertions = (layer for layer in network.layers if isinstance(layer, IAssertionLayer))
    layers = layers_before([*(tensor.producer for tensor in network.outputs), *also, *assertions])
    return [layer for layer in network.layers if layer in layers]


def layers_before(layers: Iterable[ILayer | None]) -> set[ILayer]:
    """Some layers and those that they depend on, also by the limits of loops and the conditions of conditionals."""
    stack, before = list(layers), set[ILayer]()
    while stack:
        layer = stack.pop()
        if layer is None or layer in before:
            continue
        before.add(layer)
        stack.extend(tensor.producer for tensor in layer.inputs if tensor is not None)
        if isinstance(layer, ILoopBoundaryLayer):
            stack.extend(layer.loop.boundary(ITripLimitLayer))
        if isinstance(layer, IIfConditionalOutputLayer):
            stack.extend(layer.conditional.layers.of_kind(IConditionLayer))
    return before
