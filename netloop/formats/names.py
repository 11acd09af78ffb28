"""Names of layers, tensors and outputs, as the model has them."""

from netloop.formulas.composer import FormulaBuilder
from netloop.graph.tensor import LONGEST_NAME, ITensor
from netloop.network import INetworkDefinition


def name_tensor(tensor: ITensor, name: str) -> ITensor:
    """Name a tensor, unless it is an input of the network or the name is too long; return the tensor."""
    if not tensor.is_network_input and len(name.encode()) <= LONGEST_NAME:
        tensor.name = name
    return tensor


def name_layers(network: INetworkDefinition, start: int, name: str, metadata: str) -> None:
    """Name the layers from number ``start`` on that have no metadata yet."""
    for layer in network.layers[start:]:
        if not layer.metadata:
            layer.name, layer.metadata = name, metadata


def mark_output(make: FormulaBuilder, tensor: ITensor, name: str, metadata: str) -> None:
    """Mark a tensor as an output of the network, or its copy if it is an input or output of another name."""
    network = make.network
    if tensor.name != name and (tensor.is_network_input or tensor.is_network_output):
        before = len(network.layers)
        tensor = make.identity(tensor)
        name_layers(network, before, name, metadata)
    tensor.name = name
    network.mark_output(tensor)
