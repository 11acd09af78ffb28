"""The region tree: the steps of a network, nested by loops and conditionals.

A block holds steps in running order. A step is a layer; a loop, with the block of its body; or a conditional, with a
block for each branch. A layer that varies in no loop is in no loop, and one that only one branch needs is in that
branch.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

from netloop.diagnostics import Finding, NetworkError, reason
from netloop.graph.layer import ILayer
from netloop.graph.tensor import ITensor
from netloop.layers.assertion import IAssertionLayer
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
from netloop.network import INetworkDefinition


@dataclass(eq=False)
class Block:
    """Steps in running order."""

    steps: list[Step] = field(default_factory=list["Step"])

    def needed(self, wanted: Iterable[ITensor], *, assertions: bool = False) -> list[Step]:
        """The steps that some tensors depend on, and with ``assertions`` those that contain an assertion."""
        missing = set(wanted)
        found: list[Step] = []
        for step in reversed(self.steps):
            if missing.intersection(step.writes) or (assertions and step.has_assertions):
                found.append(step)
                missing.update(step.reads)
        return found[::-1]

    def reads(self, wanted: Iterable[ITensor] = ()) -> dict[ITensor, None]:
        """The tensors from outside that its steps read, and those of ``wanted`` that it does not write."""
        written = {tensor for step in self.steps for tensor in step.writes}
        read = [tensor for step in self.steps for tensor in step.reads] + list(wanted)
        return dict.fromkeys(tensor for tensor in read if tensor not in written)

    @property
    def has_assertions(self) -> bool:
        """Whether there is an assertion in one of its steps."""
        return any(step.has_assertions for step in self.steps)


@dataclass(eq=False)
class LayerStep:
    """One layer."""

    layer: ILayer

    @property
    def reads(self) -> list[ITensor]:
        """Its inputs, and for a reverse iterator the count from which it starts."""
        layer = self.layer
        trips = layer.trips if isinstance(layer, IIteratorLayer) else None
        return [each for each in (*layer.inputs, trips) if each is not None]

    @property
    def writes(self) -> tuple[ITensor, ...]:
        """Its outputs."""
        return self.layer.outputs

    @property
    def has_assertions(self) -> bool:
        """Whether it is an assertion."""
        return isinstance(self.layer, IAssertionLayer)


@dataclass(eq=False)
class LoopStep:
    """A loop, with its live boundary layers."""

    loop: ILoop
    body: Block = field(default_factory=Block)
    limits: list[ITripLimitLayer] = field(default_factory=list[ITripLimitLayer])
    recurrences: list[IRecurrenceLayer] = field(default_factory=list[IRecurrenceLayer])
    iterators: list[IIteratorLayer] = field(default_factory=list[IIteratorLayer])
    outputs: list[ILoopOutputLayer] = field(default_factory=list[ILoopOutputLayer])

    @cached_property
    def reads(self) -> list[ITensor]:
        """The tensors from outside that its body and boundary layers read."""
        boundary = [tensor for layer in (*self.limits, *self.recurrences, *self.outputs) for tensor in layer.inputs]
        inside = {each.outputs[0] for each in self.recurrences}
        return [each for each in self.body.reads(filter(None, boundary)) if each not in inside]

    @cached_property
    def writes(self) -> tuple[ITensor, ...]:
        """The tensors that leave it."""
        return tuple(each.outputs[0] for each in self.outputs)

    @cached_property
    def has_assertions(self) -> bool:
        """Whether there is an assertion in its body."""
        return self.body.has_assertions

    @property
    def states(self) -> list[ITensor]:
        """The value of each recurrence in an iteration."""
        return [each.outputs[0] for each in self.recurrences]

    @property
    def next_states(self) -> list[ITensor]:
        """The tensor of each recurrence's next value."""
        return [each.tensor(1) for each in self.recurrences]

    @property
    def stacked(self) -> list[ILoopOutputLayer]:
        """Its stacked outputs."""
        return [each for each in self.outputs if each.stacks]

    @property
    def rows(self) -> list[ITensor]:
        """The tensor of each stacked output's rows."""
        return [each.tensor(0) for each in self.stacked]

    @cached_property
    def iteration(self) -> list[Step]:
        """The steps of an iteration: those that next values, rows and assertions need."""
        return self.body.needed([*self.next_states, *self.rows], assertions=True)


@dataclass(eq=False)
class IfStep:
    """A conditional, or those of its outputs that vary in the same loops, with its two branches."""

    conditional: IIfConditional
    outputs: list[IIfConditionalOutputLayer] = field(default_factory=list[IIfConditionalOutputLayer])
    branches: tuple[Block, Block] = field(default_factory=lambda: (Block(), Block()))

    @property
    def condition(self) -> ITensor:
        """Its condition."""
        found = self.conditional.condition
        assert found is not None
        return found

    def results(self, branch: int) -> list[ITensor]:
        """The values of its outputs if a branch is taken: branch 0 if the condition is true, else 1."""
        return [tensor for each in self.outputs if (tensor := each.inputs[branch]) is not None]

    @cached_property
    def reads(self) -> list[ITensor]:
        """The condition, and the tensors from outside that its branches read."""
        inside = {each: None for branch in (0, 1) for each in self.branches[branch].reads(self.results(branch))}
        return list({self.condition: None} | inside)

    @cached_property
    def writes(self) -> tuple[ITensor, ...]:
        """The tensors that leave it."""
        return tuple(each.outputs[0] for each in self.outputs)

    @cached_property
    def has_assertions(self) -> bool:
        """Whether there is an assertion in one of its branches."""
        return any(block.has_assertions for block in self.branches)


Step = LayerStep | LoopStep | IfStep


def layers_of(step: Step) -> Iterator[ILayer]:
    """The layers of a step, and of the steps inside it."""
    if isinstance(step, LayerStep):
        yield step.layer
        return
    blocks = [step.body] if isinstance(step, LoopStep) else step.branches
    yield from (*step.limits, *step.recurrences, *step.outputs) if isinstance(step, LoopStep) else step.outputs
    for each in (each for block in blocks for each in block.steps):
        yield from layers_of(each)


Path = tuple[tuple[IfStep, int], ...]
"""The branches that lead to a step, from the outermost conditional of its region."""


def nest(network: INetworkDefinition, scopes: Scopes) -> Block:
    """The region tree of a network.

    Raises:
        NetworkError: a loop depends on its own output.
    """
    return _Tree(network, scopes).build()


@dataclass(eq=False)
class _Region:
    """The steps of one scope, before they are ordered.

    Attributes:
        ranks: the steps, each with the index of its first layer, which breaks ties in the order.
        before: the steps that each step depends on.
        uses: the steps that depend on each step, with the branch (0, 1) that does, or None.
        roots: the steps whose results leave the region.
    """

    ranks: dict[Step, int] = field(default_factory=dict["Step", int])
    before: dict[Step, dict[Step, None]] = field(default_factory=dict["Step", "dict[Step, None]"])
    uses: dict[Step, list[tuple[Step, int | None]]] = field(
        default_factory=dict["Step", "list[tuple[Step, int | None]]"]
    )
    roots: dict[Step, None] = field(default_factory=dict["Step", None])


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

    # -------------------------------------------------------- steps

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

    # -------------------------------------------------------- what needs what

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

    # -------------------------------------------------------- order and branches

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
    return boundary.finding(
        "NL207",
        f"{name!r} depends on its own output",
        reason("NL207"),
        "make two loops, or carry the value through a recurrence",
    )


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
