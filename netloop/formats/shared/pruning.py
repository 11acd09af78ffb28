"""Dead code elimination in an imported network."""

from netloop.model.graph.layer import ILayer
from netloop.model.nest import live_layers
from netloop.model.network import INetworkDefinition


def keep_live(network: INetworkDefinition, start: int = 0) -> None:
    """Remove the layers from number ``start`` on that neither an output nor an assertion of the network depends on."""
    keep(network, set(live_layers(network)) | set(network.layers[:start]))


def keep(network: INetworkDefinition, kept: set[ILayer]) -> None:
    """Remove all layers but some, and loops and conditionals of which nothing is left."""
    live = [each for each in network.layers if each in kept]
    for layer in network.layers:
        if layer not in kept:
            _unwire(layer)
    network.layers[:] = live
    for index, layer in enumerate(live):
        vars(layer)["index"] = index
    for loop in network.loops:
        loop.layers.keep(kept)
    for conditional in network.conditionals:
        conditional.layers.keep(kept)
    network.loops[:] = [each for each in network.loops if each.layers]
    network.conditionals[:] = [each for each in network.conditionals if each.layers]


def _unwire(layer: ILayer) -> None:
    for position, tensor in enumerate(layer.inputs):
        if tensor is not None:
            tensor.uses.pop((layer, position), None)
