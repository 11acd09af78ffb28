"""Scopes: the loops in which each tensor varies, derived from data flow.

The least fixpoint of these equations, where ``around(L)`` is the set of loops around loop L:

    input, constant                scope = {}
    ordinary layer                 scope = union of its inputs' scopes
    iterator or recurrence of L    scope = {L} + around(L)
    loop output of L               scope = around(L)
    output of a conditional        scope = union of those of the branches and the condition
    around(L)                      = union of the scopes of all inputs of all boundary layers of L, without L
"""

from collections import deque
from collections.abc import Iterable

from netloop.graph.layer import ILayer
from netloop.graph.tensor import ITensor
from netloop.layers.conditional import IConditionLayer, IIfConditionalOutputLayer
from netloop.layers.loop import IIteratorLayer, ILoop, ILoopBoundaryLayer, IRecurrenceLayer
from netloop.nest.live import live_layers
from netloop.network import INetworkDefinition

Loops = frozenset[ILoop]


class Scopes:
    """The scopes of the tensors of a network, and the loops around its loops.

    Only live layers count. A dead layer is never computed: it varies in no loop, and puts no loop around another.

    Attributes:
        live: the live layers, and ``also`` with all that it depends on.
        also: layers that count even if they are dead.
    """

    def __init__(self, network: INetworkDefinition, also: Iterable[ILayer] = ()) -> None:
        self.also = tuple(also)
        self.live = live_layers(network, self.also)
        self._bits = {loop: 1 << number for number, loop in enumerate(network.loops)}
        self._around = dict.fromkeys(network.loops, 0)
        self._scopes: dict[ITensor, int] = {}
        self._sets: dict[int, Loops] = {}
        self._chains: dict[int, tuple[ILoop, ...]] = {}
        self._find(self.live)

    def of(self, tensor: ITensor) -> Loops:
        """The loops in which a tensor varies."""
        return self._as_set(self._scopes.get(tensor, 0))

    def around(self, loop: ILoop) -> Loops:
        """The loops around a loop."""
        return self._as_set(self._around[loop])

    def of_layer(self, layer: ILayer) -> Loops:
        """The loops in which a layer runs: those in which an input or output varies."""
        return self._as_set(self._mask(layer))

    def chain(self, loops: Loops) -> tuple[ILoop, ...]:
        """Nested loops from the outermost to the innermost."""
        return tuple(sorted(loops, key=lambda loop: self._around[loop].bit_count()))

    def chain_of(self, tensor: ITensor) -> tuple[ILoop, ...]:
        """The loops in which a tensor varies, from the outermost to the innermost."""
        return self._chain(self._scopes.get(tensor, 0))

    def chain_around(self, loop: ILoop) -> tuple[ILoop, ...]:
        """The loops around a loop, from the outermost to the innermost."""
        return self._chain(self._around[loop])

    def _chain(self, mask: int) -> tuple[ILoop, ...]:
        if mask not in self._chains:
            self._chains[mask] = self.chain(self._as_set(mask))
        return self._chains[mask]

    def _as_set(self, mask: int) -> Loops:
        if mask not in self._sets:
            self._sets[mask] = frozenset(loop for loop, bit in self._bits.items() if mask & bit)
        return self._sets[mask]

    def _find(self, layers: list[ILayer]) -> None:
        live, queue = set(layers), deque(layers)
        while queue:
            layer = queue.popleft()
            if isinstance(layer, ILoopBoundaryLayer) and self._widen(layer):
                queue.extend(each for each in layer.loop.layers if each in live)
            if isinstance(layer, IConditionLayer):
                queue.extend(each for each in layer.conditional.output_layers if each in live)
            mask = self._mask(layer)
            for tensor in layer.outputs:
                if self._scopes.get(tensor, 0) != mask:
                    self._scopes[tensor] = mask
                    queue.extend(user for user, _ in tensor.uses if user in live)

    def _widen(self, layer: ILoopBoundaryLayer) -> bool:
        """Add the scopes of a boundary layer's inputs to the loops around its loop, and return whether any is new."""
        before = self._around[layer.loop]
        after = (before | self._union(layer)) & ~self._bits[layer.loop]
        self._around[layer.loop] = after
        return after != before

    def _mask(self, layer: ILayer) -> int:
        if isinstance(layer, IRecurrenceLayer | IIteratorLayer):
            return self._bits[layer.loop] | self._around[layer.loop]
        if isinstance(layer, ILoopBoundaryLayer):
            return self._around[layer.loop]
        mask = self._union(layer)
        if isinstance(layer, IIfConditionalOutputLayer) and layer.conditional.condition is not None:
            mask |= self._scopes.get(layer.conditional.condition, 0)
        return mask

    def _union(self, layer: ILayer) -> int:
        mask = 0
        for tensor in layer.inputs:
            if tensor is not None:
                mask |= self._scopes.get(tensor, 0)
        return mask
