"""How a tensor outside of a loop came to vary in it: the tensor of the loop's body that it was computed from."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from netloop.model.graph import ILayer, ITensor
from netloop.model.layers.loop import IIteratorLayer, ILoop, ILoopBoundaryLayer, ILoopOutputLayer, IRecurrenceLayer
from netloop.model.nest import Scopes
from netloop.model.nest.data_flow import inputs_of


@dataclass(frozen=True)
class Escape:
    """A tensor of a body that is read outside of its loop.

    Attributes:
        tensor: the tensor.
        reader: the layer outside of the loop that reads it; None if the tensor is the network output itself.
        through: the loop that this layer put inside of the first one, if the value came out of such a loop.
    """

    tensor: ITensor
    reader: ILayer | None = None
    through: ILoop | None = None


class Escapes:
    """The escapes of a network, whose scopes are chains."""

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes
        self._bodies: dict[ILoop, set[ITensor]] = {}

    def of(self, output: ITensor, loop: ILoop) -> Escape:
        """How an output, or an input of a layer outside of all loops, came to vary in a loop."""
        body, direct = self._body(loop), Escape(output)
        escapes: dict[ITensor, Escape] = {output: direct}
        iterated: Escape | None = None
        queue = deque([output])
        while queue:
            tensor = queue.popleft()
            here = escapes[tensor]
            if tensor in body or _is_of(tensor, loop, IRecurrenceLayer):
                return here
            if _is_of(tensor, loop, IIteratorLayer):
                iterated = iterated or here
            for reader, other in self._before(tensor, loop):
                if other not in escapes:
                    escapes[other] = Escape(other, reader, here.through or _loop_behind(tensor))
                    queue.append(other)
        # nothing of the loop is computed from an iterated value: what is computed from it may belong to the body
        return iterated if iterated is not None and self._follows(output, loop) else direct

    def _body(self, loop: ILoop) -> set[ITensor]:
        """The tensors that vary in a loop, and that its boundary layers depend on."""
        if loop not in self._bodies:
            reads = (tensor for layer in loop.layers for tensor in layer.inputs)
            stack = [tensor for tensor in reads if tensor is not None and self._scopes.varies_in(tensor, loop)]
            self._bodies[loop] = body = set(stack)
            while stack:
                for _, tensor in self._before(stack.pop(), loop):
                    if tensor not in body:
                        body.add(tensor)
                        stack.append(tensor)
        return self._bodies[loop]

    def _before(self, tensor: ITensor, loop: ILoop) -> Iterator[tuple[ILayer, ITensor]]:
        """The tensors that make a tensor vary in a loop, each with the layer that reads it."""
        producer = tensor.producer
        if _is_of(tensor, loop, IRecurrenceLayer, IIteratorLayer):
            return
        for reader, other in _inputs(producer):
            if self._scopes.varies_in(other, loop):
                yield reader, other

    def _follows(self, tensor: ITensor, loop: ILoop) -> bool:
        """Whether a tensor is computed from an output of a loop."""
        seen, stack = {tensor}, [tensor]
        while stack:
            last = stack.pop()
            if _is_of(last, loop, ILoopOutputLayer):
                return True
            for _, other in _inputs(last.producer):
                if other not in seen:
                    seen.add(other)
                    stack.append(other)
        return False


def _inputs(producer: ILayer | None) -> Iterator[tuple[ILayer, ITensor]]:
    """The tensors that a layer's outputs depend on, each with its reader; at a loop's boundary, those of the loop."""
    layers: Iterable[ILayer] = () if producer is None else (producer,)
    if isinstance(producer, ILoopBoundaryLayer):
        layers = producer.loop.layers
    for layer in layers:
        yield from ((layer, tensor) for tensor in inputs_of(layer) if tensor is not None)


def _is_of(tensor: ITensor, loop: ILoop, *kinds: type[ILoopBoundaryLayer]) -> bool:
    producer = tensor.producer
    return isinstance(producer, kinds) and producer.loop is loop


def _loop_behind(tensor: ITensor) -> ILoop | None:
    return tensor.producer.loop if isinstance(tensor.producer, ILoopBoundaryLayer) else None
