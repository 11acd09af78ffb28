"""Tensors whose values determine shapes; programs are specialised on those values."""

from collections.abc import Iterator

from netloop.model.graph import ITensor, Operation
from netloop.model.graph.infer import Known
from netloop.model.layers.gather import IGatherLayer
from netloop.model.layers.loop import IRecurrenceLayer
from netloop.model.layers.sources import IShapeLayer
from netloop.model.network import INetworkDefinition
from netloop.values.types import LARGEST_KNOWN_VALUE, TensorType


def valued_before_run(network: INetworkDefinition) -> frozenset[ITensor]:
    """The tensors whose values decide the shape of some tensor before the network runs.

    Types do not follow values through large tensors. So the number of frames that a network computes from a text by
    weights is known only while it runs, and no program is made for each text.
    """
    lost = _not_followed(network)
    return network.shape_tensors(lambda tensor: tensor not in lost)


def valued_in_run(network: INetworkDefinition) -> frozenset[ITensor]:
    """The tensors whose values decide the shape of some tensor before the network runs or meanwhile.

    Of values that are computed meanwhile, sizes and what integers and bools give them suffice: sizes that follow from
    other numbers are integers in the end, and pieces that are made for these serve all such numbers.
    """
    return valued_before_run(network) | network.shape_tensors(lambda tensor: not _is_float(network.types.of(tensor)))


def _not_followed(network: INetworkDefinition) -> set[ITensor]:
    """The tensors whose values types do not have, whatever the inputs, and what follows from them.

    They are large ones, and those that the iterations of a loop look up: the bags of an embedding bag have other
    lengths in each call, and no program is made for each combination of them.
    """
    values = {
        tensor: None for layer in network.layers for tensor in (*layer.inputs, *layer.outputs) if tensor is not None
    }
    stack, tensors = [tensor for tensor in values if _is_large(network.types.of(tensor))], set[ITensor]()
    stack += _looked_up(network)
    while stack:
        tensor = stack.pop()
        if tensor not in tensors:
            tensors.add(tensor)
            # other layers than operations may have values without those of all inputs, as that of the branch taken
            readers = (layer for layer, _ in tensor.uses if isinstance(layer, Operation))
            stack += [tensor for layer in readers if not isinstance(layer, IShapeLayer) for tensor in layer.outputs]
    return tensors


def _looked_up(network: INetworkDefinition) -> Iterator[ITensor]:
    """The elements that layers gather at positions that follow from the states of loops."""
    stack = [layer.outputs[0] for layer in network.layers if isinstance(layer, IRecurrenceLayer)]
    varying = set[ITensor]()
    while stack:
        tensor = stack.pop()
        if tensor not in varying:
            varying.add(tensor)
            for layer, position in tensor.uses:
                if isinstance(layer, IGatherLayer) and position == 1:
                    yield layer.outputs[0]
                elif isinstance(layer, Operation) and not isinstance(layer, IShapeLayer):
                    stack += layer.outputs


def _is_float(type_: Known) -> bool:
    return isinstance(type_, TensorType) and type_.is_float


def _is_large(type_: Known) -> bool:
    return isinstance(type_, TensorType) and type_.nbytes > LARGEST_KNOWN_VALUE
