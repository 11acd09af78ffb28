"""The tensors that are part of a compiled program, and the constants that are its arguments."""

from collections.abc import Iterable

from netloop.model.graph import ILayer, ITensor, Operation, TypeTable
from netloop.model.layers.sources import IConstantLayer, IShapeLayer
from netloop.model.nest import live_layers
from netloop.model.network import INetworkDefinition


class CompileTimeConstants:
    """The tensors that are part of a program: integers and bools that follow from shapes and integers only.

    Values that follow from floating-point constants are not among them, as these constants are arguments: the same
    program then serves refitted weights, and XLA cannot emit every such constant.
    """

    def __init__(self, types: TypeTable, tensors: Iterable[ITensor]) -> None:
        self._types = types
        # of the tensors that the program is given, only the type can say that they are constant
        self._known = {tensor: types[tensor].is_known_integer for tensor in tensors}

    def __contains__(self, tensor: ITensor) -> bool:
        if tensor not in self._known:
            self._known[tensor] = self._types[tensor].is_known_integer and self._follows_from_shapes(tensor.producer)
        return self._known[tensor]

    def _follows_from_shapes(self, layer: ILayer | None) -> bool:
        if layer is None or isinstance(layer, IShapeLayer):
            return True
        return isinstance(layer, Operation) and all(tensor in self for tensor in layer.inputs if tensor is not None)


def constants_of(network: INetworkDefinition) -> list[IConstantLayer]:
    """The constants that a program takes as arguments: all that the network needs, except small integers and bools."""
    constants = [layer for layer in live_layers(network) if isinstance(layer, IConstantLayer)]
    types = network.types
    return [constant for constant in constants if not types[constant.outputs[0]].is_known_integer]
