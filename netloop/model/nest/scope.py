"""Scopes: the loops in which each tensor varies, derived from data flow.

The least fixpoint of these equations, where ``around(L)`` is the set of loops around loop L:

    input, constant                scope = {}
    ordinary layer                 scope = union of its inputs' scopes
    iterator or recurrence of L    scope = {L} + around(L)
    loop output of L               scope = around(L)
    output of a conditional        scope = union of those of the branches and the condition
    around(L)                      = union of the scopes of all inputs of all boundary layers of L, without L

A scope is an integer with a bit for each loop. Two sweeps over the layers in the order of data flow solve the
equations, however deep the nest. In the first, recurrences and iterators vary in their own loop only, so that each loop
gets the loops that its boundary layers meet; those and the loops around them are ``around(L)``, which the second sweep
starts from.
"""

import functools
import operator
from collections.abc import Iterable
from itertools import combinations

from netloop.model.graph import ILayer, ITensor, NetworkBase
from netloop.model.layers.loop import IIteratorLayer, ILoop, ILoopBoundaryLayer, IRecurrenceLayer
from netloop.model.nest.data_flow import DataFlow, inputs_of
from netloop.model.nest.live import live_layers
from netloop.model.nest.scope_equations import closure, sweep, union

Loops = frozenset[ILoop]
Place = ITensor | ILayer | ILoop
"""A thing that runs in some loops: a tensor in those in which it varies, a loop in those around it."""


class Scopes:
    """The scopes of the tensors of a network, and the loops around its loops.

    Only live layers count. A dead layer is never computed: it varies in no loop, and puts no loop around another.

    Attributes:
        live: the live layers, and ``also`` with all that it depends on.
        also: layers that count even if they are dead.
        loops: the live loops; of nested ones that an output depends on, the inner before the outer.
        entangled: the pairs of loops that are each inside the other, which is an error of the network.
    """

    def __init__(self, network: NetworkBase, also: Iterable[ILayer] = ()) -> None:
        self.also = tuple(also)
        self.live = live_layers(network, self.also)
        # without loops all scopes are empty, and no order is needed to see it
        has_loops = any(isinstance(layer, ILoopBoundaryLayer) for layer in self.live)
        flow = DataFlow(self.live if has_loops else ())
        # the inner one of nested loops ends first, so that the lowest bit of a scope is the innermost loop
        self.loops = [node for node in flow.order if isinstance(node, ILoop)]
        self._bits = {loop: 1 << number for number, loop in enumerate(self.loops)}
        around = closure(sweep(flow, self._bits, {}), self.loops)
        cyclic = [loop for loop, bit in self._bits.items() if around[loop] & bit]
        # what is around an entangled loop need not be around those in it
        self._scopes = sweep(flow, self._bits, None if cyclic else around)
        self._innermost = self._innermost_of_chains()
        self._chains: dict[int, tuple[ILoop, ...]] = {}
        self.entangled = [pair for pair in combinations(cyclic, 2) if self._are_entangled(*pair)]
        self._entangled = functools.reduce(
            operator.or_, (self._bits[loop] for pair in self.entangled for loop in pair), 0
        )

    # ------------------------------------------------------------------ as sets and chains

    def of(self, tensor: ITensor) -> Loops:
        """The loops in which a tensor varies."""
        return self._as_set(self._mask(tensor))

    def around(self, loop: ILoop) -> Loops:
        """The loops around a loop."""
        return self._as_set(self._mask(loop))

    def of_layer(self, layer: ILayer) -> Loops:
        """The loops in which a layer runs: those in which an input or output varies."""
        return self._as_set(self._mask(layer))

    def chain_of(self, tensor: ITensor) -> tuple[ILoop, ...]:
        """The loops in which a tensor varies, which are nested, from the outermost to the innermost."""
        return self._chain(self._mask(tensor))

    def chain_around(self, loop: ILoop) -> tuple[ILoop, ...]:
        """The loops around a loop, which are nested, from the outermost to the innermost."""
        return self._chain(self._mask(loop))

    def _as_set(self, mask: int) -> Loops:
        loops: list[ILoop] = []
        while mask:
            loops.append(self.loops[mask.bit_length() - 1])
            mask ^= self._bits[loops[-1]]
        return frozenset(loops)

    def _chain(self, mask: int) -> tuple[ILoop, ...]:
        if mask not in self._chains:
            loops: list[ILoop] = []
            rest = mask
            while rest:
                loops.append(self._innermost[rest])
                rest = self._mask(loops[-1])
            self._chains[mask] = tuple(reversed(loops))
        return self._chains[mask]

    # ------------------------------------------------------------------ without listing loops

    def innermost(self, place: Place) -> ILoop | None:
        """The innermost loop of a scope that is a chain; None if it is empty."""
        mask = self._mask(place)
        return self._innermost[mask] if mask else None

    def depth(self, place: Place) -> int:
        """The number of loops in a scope."""
        return self._mask(place).bit_count()

    def varies_in(self, place: Place, loop: ILoop) -> bool:
        """Whether a loop is in a scope."""
        return bool(self._mask(place) & self._bits.get(loop, 0))

    def are_equal(self, first: Place, second: Place) -> bool:
        """Whether two scopes have the same loops."""
        return self._mask(first) == self._mask(second)

    def is_chain(self, place: Place) -> bool:
        """Whether a scope is one loop and all loops around it, each nested in the next; or empty."""
        mask = self._mask(place)
        return not mask or mask in self._innermost

    def is_entangled(self, place: Place) -> bool:
        """Whether a scope has two loops that are each inside the other."""
        return bool(self._mask(place) & self._entangled)

    def _are_entangled(self, first: ILoop, second: ILoop) -> bool:
        return self.varies_in(first, second) and self.varies_in(second, first)

    def _mask(self, place: Place) -> int:
        if not self.loops:
            return 0
        if isinstance(place, ITensor | ILoop):
            return self._scopes.get(place, 0)
        if isinstance(place, ILoopBoundaryLayer):
            is_inside = isinstance(place, IRecurrenceLayer | IIteratorLayer)
            return self._scopes.get(place.loop, 0) | (self._bits.get(place.loop, 0) if is_inside else 0)
        return union(self._scopes, inputs_of(place))

    def _innermost_of_chains(self) -> dict[int, ILoop]:
        """The innermost loop of each scope that is a chain."""
        loops: dict[int, ILoop] = {}
        for loop in sorted(self.loops, key=self.depth):
            around = self._mask(loop)
            if not around or around in loops:
                loops[around | self._bits[loop]] = loop
        return loops
