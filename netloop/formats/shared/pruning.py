"""Dead code elimination in an imported network."""

from netloop.model.graph.layer import ILayer
from netloop.model.nest import live_layers
from netloop.model.network import INetworkDefinition


def keep_live(network: INetworkDefinition, start: int = 0) -> None:
    """Remove the layers from number ``start`` on that neither an output nor an assertion of the network depends on."""
    keep(network, set(live_layers(network)) | set(network.layers[:start]))


def keep(network: INetworkDefinition, kept: set[ILayer]) -> None:
    """Remove all layers but some, and the loops and conditionals that become empty."""
    live = [layer for layer in network.layers if layer in kept]
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
    network.loops[:] = [loop for loop in network.loops if loop.layers]
    network.conditionals[:] = [conditional for conditional in network.conditionals if conditional.layers]


def _unwire(layer: ILayer) -> None:
    for position, tensor in enumerate(layer.inputs):
        if tensor is not None:
            tensor.uses.pop((layer, position), None)
