"""Which tensors are part of a compiled program, and which constants are its arguments."""

from collections.abc import Callable, Iterable

from netloop.graph.infer import TypeTable
from netloop.graph.layer import ILayer, Operation
from netloop.graph.tensor import ITensor
from netloop.layers.sources import IConstantLayer, IShapeLayer
from netloop.nest import live_layers
from netloop.network import INetworkDefinition
from netloop.types import LARGEST_KNOWN_VALUE, TensorType


class CompileTimeConstants:
    """The tensors that are part of a program: integers and bools that follow from shapes and integers only.

    Values that follow from floating-point constants are not among them, as these constants are arguments: the same
    program then serves refitted weights, and XLA cannot emit every such constant.
    """

    def __init__(self, types: TypeTable, given: Iterable[ITensor]) -> None:
        self._types = types
        # of the tensors that the program is given, only the type can say that they are constant
        self._known = {tensor: types[tensor].is_known_integer for tensor in given}

    def __contains__(self, tensor: ITensor) -> bool:
        if tensor not in self._known:
            self._known[tensor] = self._types[tensor].is_known_integer and self._follows_from_shapes(tensor.producer)
        return self._known[tensor]

    def _follows_from_shapes(self, layer: ILayer | None) -> bool:
        if layer is None or isinstance(layer, IShapeLayer):
            return True
        return isinstance(layer, Operation) and all(each in self for each in layer.inputs if each is not None)


def constants_of(network: INetworkDefinition) -> list[IConstantLayer]:
    """The constants that a program takes as arguments: all that the network needs, except small integers and bools."""
    constants = [each for each in live_layers(network) if isinstance(each, IConstantLayer)]
    types = network.types
    return [each for each in constants if not types[each.outputs[0]].is_known_integer]


def followed_shape_tensors(network: INetworkDefinition) -> frozenset[ITensor]:
    """The tensors whose values decide the shape of some tensor before a network runs.

    Types do not follow values through large tensors: a number of frames that was computed by weights from a text is
    known only while the network runs, and programs are not made for each text.
    """
    lost = _not_followed(network)
    return _deciding(network, lambda tensor: tensor not in lost)


def shape_tensors_of_run(network: INetworkDefinition) -> frozenset[ITensor]:
    """The tensors whose values decide the shape of some tensor, also while the network runs.

    Of values that are computed then, those of the integers and bools suffice: a size is one.
    """
    integers = _deciding(network, lambda tensor: not _is_float(network.types.of(tensor)))
    return followed_shape_tensors(network) | integers


def _deciding(network: INetworkDefinition, counts: Callable[[ITensor], bool]) -> frozenset[ITensor]:
    """The tensors on which the shape of some tensor depends through tensors that count."""
    stack = [each for layer in network.layers for at, each in enumerate(layer.inputs) if at in layer.SHAPE_INPUTS]
    found = dict[ITensor, None]()
    while stack:
        tensor = stack.pop()
        if tensor is not None and tensor not in found and counts(tensor):
            found[tensor] = None
            producer = tensor.producer
            if producer is not None and not isinstance(producer, IShapeLayer):
                stack += producer.type_inputs()
    return frozenset(found)


def _not_followed(network: INetworkDefinition) -> set[ITensor]:
    """The tensors whose values types do not have: large ones, and what follows from them."""
    made = [each for layer in network.layers for each in (*layer.inputs, *layer.outputs) if each is not None]
    stack, found = [each for each in made if _is_large(network.types.of(each))], set[ITensor]()
    while stack:
        tensor = stack.pop()
        if tensor not in found:
            found.add(tensor)
            readers = (layer for layer, _ in tensor.uses if not isinstance(layer, IShapeLayer))
            stack += [each for layer in readers for each in layer.dependent_tensors()]
    return found


def _is_float(found: object) -> bool:
    return isinstance(found, TensorType) and found.is_float


def _is_large(found: object) -> bool:
    return isinstance(found, TensorType) and found.nbytes > LARGEST_KNOWN_VALUE
