"""The least solution of the equations of scopes, as integers with a bit for each loop."""

from collections.abc import Iterable, Mapping, Sequence

from netloop.model.graph.tensor import ITensor
from netloop.model.layers.loop import IIteratorLayer, ILoop, ILoopBoundaryLayer, IRecurrenceLayer
from netloop.model.nest.data_flow import DataFlow, inputs_of

Scopes = dict[ITensor | ILoop, int]
"""The scope of each tensor, and the loops around each loop."""


def sweep(flow: DataFlow, bits: Mapping[ILoop, int], around: Mapping[ITensor | ILoop, int] | None = None) -> Scopes:
    """Sweep over the layers until nothing changes, where iterators and recurrences vary in their loop and ``around``.

    One sweep in the order of data flow is enough, unless ``around`` is None: then it is part of the solution.
    """
    scopes: Scopes = {}
    known: dict[int, int] = {}
    around = scopes if around is None else around
    is_changed = True
    while is_changed:
        is_changed = False
        for node in flow.order:
            if isinstance(node, ILoop):
                inputs = (tensor for layer in flow.boundary[node] for tensor in layer.inputs)
                mask, targets = union(scopes, inputs) & ~bits[node], [node]
            elif isinstance(node, IRecurrenceLayer | IIteratorLayer):
                mask, targets = bits[node.loop] | around.get(node.loop, 0), node.outputs
            elif isinstance(node, ILoopBoundaryLayer):
                mask, targets = scopes.get(node.loop, 0), node.outputs
            else:
                mask, targets = union(scopes, inputs_of(node)), node.outputs
            for target in targets:
                if scopes.get(target, 0) != mask:
                    # equal scopes are one integer, as that of a thousand loops has a thousand bits
                    scopes[target] = known.setdefault(mask, mask)
                    is_changed = True
    return scopes


def union(scopes: Mapping[ITensor | ILoop, int], tensors: Iterable[ITensor | None]) -> int:
    """The union of the scopes of some tensors."""
    literal = 0
    for tensor in tensors:
        mask = 0 if tensor is None else scopes.get(tensor, 0)
        if mask != literal:
            literal = literal | mask if literal else mask
    return literal


def closure(direct: Mapping[ITensor | ILoop, int], loops: Sequence[ILoop]) -> Scopes:
    """The transitive closure of ``direct``, the bits of loops around a loop, for ``loops`` in the order of their bits.

    The lowest bit of those around a loop is mostly the innermost loop, and implies the others. Entangled loops are
    around themselves.
    """
    kept: dict[ILoop, list[int]] = {loop: [] for loop in loops}
    scopes: Scopes = dict.fromkeys(loops, 0)
    is_changed = True
    while is_changed:
        is_changed = False
        for loop in reversed(loops):
            mask = 0
            for number in kept[loop]:
                mask |= 1 << number | scopes[loops[number]]
            while missing := direct.get(loop, 0) & ~mask:
                number = (missing & -missing).bit_length() - 1
                kept[loop].append(number)
                mask |= 1 << number | scopes[loops[number]]
            is_changed |= mask != scopes[loop]
            scopes[loop] = mask
    return scopes
