"""The order of data flow: layers and loops, each after those that it depends on."""

from collections.abc import Iterable, Iterator, Sequence

from netloop.model.graph import ILayer, ITensor
from netloop.model.layers.conditional import IIfConditionalOutputLayer
from netloop.model.layers.loop import IIteratorLayer, ILoop, ILoopBoundaryLayer, IRecurrenceLayer

Node = ILayer | ILoop
"""A layer; or a loop, which stands for its end."""


def inputs_of(layer: ILayer) -> Sequence[ITensor | None]:
    """The tensors that the value of a layer depends on, with the condition of a conditional's output."""
    if isinstance(layer, IIfConditionalOutputLayer):
        return *layer.inputs, layer.conditional.condition
    return layer.inputs


class DataFlow:
    """Some layers and their loops, in an order in which each comes after those that it depends on.

    A recurrence or iterator depends on nothing: it is there when an iteration begins. A loop depends on the inputs of
    its boundary layers, and its outputs on the loop. Where nodes depend on each other, which is an error of the
    network, the order is that in which they were found.

    Attributes:
        boundary: the boundary layers of each loop among the layers.
        order: the layers and loops.
    """

    def __init__(self, layers: Iterable[ILayer]) -> None:
        self.boundary: dict[ILoop, list[ILayer]] = {}
        layers = list(layers)
        for layer in layers:
            if isinstance(layer, ILoopBoundaryLayer):
                self.boundary.setdefault(layer.loop, []).append(layer)
        # where only assertions need loops, none depends on another, and the inner ones were mostly added last
        self.order = self._ordered([*reversed(self.boundary), *layers])

    def _ordered(self, nodes: Iterable[Node]) -> list[Node]:
        entered: set[Node] = set()
        result: list[Node] = []
        for node in nodes:
            stack = [] if node in entered else [(node, self._before(node))]
            entered.add(node)
            while stack:
                last, before = stack[-1]
                following = next((node for node in before if node not in entered), None)
                if following is None:
                    result.append(last)
                    stack.pop()
                else:
                    entered.add(following)
                    stack.append((following, self._before(following)))
        return result

    def _before(self, node: Node) -> Iterator[Node]:
        if isinstance(node, ILoop):
            inputs = (tensor for layer in self.boundary[node] for tensor in layer.inputs)
        elif isinstance(node, IRecurrenceLayer | IIteratorLayer):
            return iter(())
        elif isinstance(node, ILoopBoundaryLayer):
            return iter((node.loop,))
        else:
            inputs = iter(inputs_of(node))
        return (tensor.producer for tensor in inputs if tensor is not None and tensor.producer is not None)
