"""The region tree of a network: its steps, nested by loops and conditionals.

A layer that varies in no loop is in no loop, and one that only one branch needs is in that branch.
"""

from __future__ import annotations

import heapq
from graphlib import CycleError, TopologicalSorter

from netloop.diagnostics import Finding, NetworkError, reason
from netloop.graph.layer import ILayer
from netloop.graph.tensor import ITensor
from netloop.layers.conditional import IConditionLayer, IIfConditional, IIfConditionalOutputLayer
from netloop.layers.loop import (
    IIteratorLayer,
    ILoop,
    ILoopBoundaryLayer,
    ILoopOutputLayer,
    IRecurrenceLayer,
    ITripLimitLayer,
)
from netloop.nest.scope import Loops, Scopes
from netloop.nest.steps import Block, IfStep, LayerStep, LoopStep, Step
from netloop.network import INetworkDefinition

Path = tuple[tuple[IfStep, int], ...]
"""The branches that lead to a step, from the outermost conditional of its region."""


def nest(network: INetworkDefinition, scopes: Scopes) -> Block:
    """The region tree of a network.

    Raises:
        NetworkError: a loop depends on its own output.
    """
    return _Tree(network, scopes).build()


class _Region:
    """The steps of one scope, before they are ordered.

    Attributes:
        ranks: the steps, each with the index of its first layer, which breaks ties in the order.
        before: the steps that each step depends on.
        uses: the steps that depend on each step, with the branch (0, 1) that does, or None.
        roots: the steps whose results leave the region.
    """

    def __init__(self) -> None:
        self.ranks: dict[Step, int] = {}
        self.before: dict[Step, dict[Step, None]] = {}
        self.uses: dict[Step, list[tuple[Step, int | None]]] = {}
        self.roots: dict[Step, None] = {}


class _Tree:
    """The region tree under construction: the steps of each region, then dependencies, then order and branches."""

    def __init__(self, network: INetworkDefinition, scopes: Scopes) -> None:
        self.scopes = scopes
        self.network = network
        self.regions: dict[Loops, _Region] = {frozenset(): _Region()}
        self.loops: dict[ILoop, LoopStep] = {}
        self.conditionals: dict[tuple[IIfConditional, Loops], IfStep] = {}
        self.makers: dict[ITensor, tuple[Step, Loops]] = {}
        self.top = Block()

    def build(self) -> Block:
        layers = self.scopes.live
        readers = [(layer, *self._place(layer)) for layer in layers if not isinstance(layer, IConditionLayer)]
        for layer, step, scope in readers:
            self._connect(layer, step, scope)
        for tensor in (*self.network.outputs, *(each for layer in self.scopes.also for each in layer.outputs)):
            self._root(tensor)
        for scope, region in self.regions.items():
            self._arrange(region, self._block(scope))
        return self._block(frozenset())

    def _block(self, scope: Loops) -> Block:
        return self.loops[self.scopes.chain(scope)[-1]].body if scope else self.top

    def _place(self, layer: ILayer) -> tuple[Step, Loops]:
        """The step that a layer belongs to, and the scope in which this step runs."""
        scope = self.scopes.of_layer(layer)
        if isinstance(layer, ILoopBoundaryLayer) and not isinstance(layer, IIteratorLayer):
            return self._loop_step(layer), self.scopes.around(layer.loop)
        if isinstance(layer, IIfConditionalOutputLayer):
            step: Step = self.conditionals.setdefault((layer.conditional, scope), IfStep(layer.conditional))
            step.outputs.append(layer)
        else:
            step = LayerStep(layer)
        if isinstance(layer, IIteratorLayer):
            self._loop_step(layer).iterators.append(layer)
        self._enter(step, scope, layer)
        return step, scope

    def _enter(self, step: Step, scope: Loops, layer: ILayer) -> None:
        self.regions.setdefault(scope, _Region()).ranks.setdefault(step, layer.index)
        for tensor in layer.outputs:
            self.makers[tensor] = step, scope

    def _loop_step(self, layer: ILoopBoundaryLayer) -> LoopStep:
        around = self.scopes.around(layer.loop)
        step = self.loops.setdefault(layer.loop, LoopStep(layer.loop))
        self.regions.setdefault(around, _Region()).ranks.setdefault(step, layer.index)
        self.regions.setdefault(around | {layer.loop}, _Region())
        if isinstance(layer, ITripLimitLayer):
            step.limits.append(layer)
        elif isinstance(layer, IRecurrenceLayer):
            step.recurrences.append(layer)
        elif isinstance(layer, ILoopOutputLayer):
            step.outputs.append(layer)
            self.makers[layer.outputs[0]] = step, around
        return step

    def _connect(self, layer: ILayer, step: Step, scope: Loops) -> None:
        for position, tensor in enumerate(layer.inputs):
            if tensor is None:
                continue
            if isinstance(step, LoopStep) and step.loop in self.scopes.of(tensor):
                self._root(tensor)
            else:
                self._edge(tensor, step, scope, position if isinstance(step, IfStep) else None)
        if isinstance(step, IfStep):
            self._edge(step.condition, step, scope, None)

    def _root(self, tensor: ITensor) -> None:
        if tensor in self.makers:
            step, scope = self.makers[tensor]
            self.regions[scope].roots[step] = None

    def _edge(self, tensor: ITensor, reader: Step, scope: Loops, branch: int | None) -> None:
        """Record that ``reader`` in ``scope`` depends on a tensor of the same region or of one around it."""
        if tensor not in self.makers:
            return
        maker, home = self.makers[tensor]
        while scope != home:
            innermost = self.scopes.chain(scope)[-1]
            reader, scope, branch = self.loops[innermost], self.scopes.around(innermost), None
        region = self.regions[home]
        region.before.setdefault(reader, {})[maker] = None
        region.uses.setdefault(maker, []).append((reader, branch))

    def _arrange(self, region: _Region, block: Block) -> None:
        order = _in_order(region)
        paths = _paths(region, order)
        for step in order:
            path = paths[step]
            home = path[-1][0].branches[path[-1][1]] if path else block
            home.steps.append(step)


def _in_order(region: _Region) -> list[Step]:
    """The steps in topological order; ties are broken by the order in which their layers were added."""
    sorter = TopologicalSorter({step: region.before.get(step, {}) for step in region.ranks})
    try:
        sorter.prepare()
    except CycleError as error:
        raise NetworkError(_loop_feeds_itself(error.args[1])) from None
    order: list[Step] = []
    ready: list[tuple[int, Step]] = []
    while sorter.is_active():
        for step in sorter.get_ready():
            heapq.heappush(ready, (region.ranks[step], step))
        _, step = heapq.heappop(ready)
        order.append(step)
        sorter.done(step)
    return order


def _loop_feeds_itself(cycle: list[Step]) -> Finding:
    step = next(each for each in cycle if not isinstance(each, LayerStep))
    boundary = step.outputs[0]
    name = step.loop.name if isinstance(step, LoopStep) else step.conditional.name
    fix = "make two loops, or carry the value through a recurrence"
    return boundary.finding("NL207", f"{name!r} depends on its own output", reason("NL207"), fix)


def _paths(region: _Region, order: list[Step]) -> dict[Step, Path]:
    """The branches that lead to each step: those that all of its uses have in common.

    An assertion, or a loop that is live only for its assertions, has no uses: it goes into the innermost branch that a
    step which it depends on is in.
    """
    unused = [step for step in order if step not in region.uses and step not in region.roots]
    pinned: dict[Step, Path] = {}
    if unused:
        pinned = _paths_of_unused(region, order, unused, _common_paths(region, order, pinned))
    return {step: path or () for step, path in _common_paths(region, order, pinned).items()}


def _common_paths(region: _Region, order: list[Step], pinned: dict[Step, Path]) -> dict[Step, Path | None]:
    """The common path of each step's uses, or the path that it is pinned to; None for a step with neither."""
    paths: dict[Step, Path | None] = {}
    for step in reversed(order):
        found: Path | None = () if step in region.roots else pinned.get(step)
        for user, branch in region.uses.get(step, ()):
            path = paths[user]
            if path is None:
                continue
            if branch is not None and isinstance(user, IfStep):
                path = (*path, (user, branch))
            found = path if found is None else _common(found, path)
        paths[step] = found
    return paths


def _paths_of_unused(
    region: _Region, order: list[Step], unused: list[Step], paths: dict[Step, Path | None]
) -> dict[Step, Path]:
    found: dict[Step, Path] = {}
    for step in order:
        path = paths[step]
        if path is None:
            path = ()
            for maker in region.before.get(step, ()):
                path = _deeper(path, found[maker])
        found[step] = path
    return {step: found[step] for step in unused}


def _common(a: Path, b: Path) -> Path:
    shared = 0
    while shared < min(len(a), len(b)) and a[shared] == b[shared]:
        shared += 1
    return a[:shared]


def _deeper(a: Path, b: Path) -> Path:
    common = _common(a, b)
    return max(a, b, key=len) if common in (a, b) else common
