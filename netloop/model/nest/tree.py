"""The region tree of a network: its steps, nested by loops and conditionals.

A layer that varies in no loop is in no loop, and one that only one branch needs is in that branch.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from netloop.model.graph import ILayer, ITensor, NetworkBase
from netloop.model.layers.conditional import IConditionLayer, IIfConditional, IIfConditionalOutputLayer
from netloop.model.layers.loop import (
    IIteratorLayer,
    ILoop,
    ILoopBoundaryLayer,
    ILoopOutputLayer,
    IRecurrenceLayer,
    ITripLimitLayer,
)
from netloop.model.nest.ancestry import Ancestry
from netloop.model.nest.ranked_order import ranked_order
from netloop.model.nest.scope import Scopes
from netloop.model.nest.steps import Block, IfStep, LayerStep, LoopStep, Step, walk
from netloop.values.diagnostics import Finding, NetworkError, reason

Scope = ILoop | None
"""The innermost loop in which something varies, which stands for all loops around it too; None outside of loops."""
Branch = tuple[IfStep, int]
"""A branch of a conditional: 0 if its condition is true, else 1."""


def nest(network: NetworkBase, scopes: Scopes) -> Block:
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

    def __init__(self, network: NetworkBase, scopes: Scopes) -> None:
        self.scopes = scopes
        self.network = network
        self.regions: dict[Scope, _Region] = {None: _Region()}
        self.nesting = Ancestry[ILoop]()
        self.loops: dict[ILoop, LoopStep] = {}
        self.conditionals: dict[tuple[IIfConditional, Scope], IfStep] = {}
        self.makers: dict[ITensor, tuple[Step, Scope]] = {}
        self.top = Block()

    def build(self) -> Block:
        layers = self.scopes.live
        for loop in sorted(self.scopes.loops, key=self.scopes.depth):
            self.nesting.add(loop, self.scopes.innermost(loop))
        readers = [(layer, *self._place(layer)) for layer in layers if not isinstance(layer, IConditionLayer)]
        for layer, step, scope in readers:
            self._connect(layer, step, scope)
        for tensor in (*self.network.outputs, *(tensor for layer in self.scopes.also for tensor in layer.outputs)):
            self._root(tensor)
        for scope, region in self.regions.items():
            self._arrange(region, self.loops[scope].body if scope else self.top)
        for step in reversed(list(walk(self.top))):
            if not isinstance(step, LayerStep):
                step.has_assertions = any(block.has_assertions for block in step.blocks)
        return self.top

    def _place(self, layer: ILayer) -> tuple[Step, Scope]:
        """The step that a layer belongs to, and the scope in which this step runs."""
        if isinstance(layer, ILoopBoundaryLayer) and not isinstance(layer, IIteratorLayer):
            return self._loop_step(layer), self.scopes.innermost(layer.loop)
        scope = self.scopes.innermost(layer)
        if isinstance(layer, IIfConditionalOutputLayer):
            step: Step = self.conditionals.setdefault((layer.conditional, scope), IfStep(layer.conditional))
            step.outputs.append(layer)
        else:
            step = LayerStep(layer)
        if isinstance(layer, IIteratorLayer):
            self._loop_step(layer).iterators.append(layer)
        self._enter(step, scope, layer)
        return step, scope

    def _enter(self, step: Step, scope: Scope, layer: ILayer) -> None:
        self.regions.setdefault(scope, _Region()).ranks.setdefault(step, layer.index)
        for tensor in layer.outputs:
            self.makers[tensor] = step, scope

    def _loop_step(self, layer: ILoopBoundaryLayer) -> LoopStep:
        around = self.scopes.innermost(layer.loop)
        step = self.loops.setdefault(layer.loop, LoopStep(layer.loop))
        self.regions.setdefault(around, _Region()).ranks.setdefault(step, layer.index)
        self.regions.setdefault(layer.loop, _Region())
        if isinstance(layer, ITripLimitLayer):
            step.limits.append(layer)
        elif isinstance(layer, IRecurrenceLayer):
            step.recurrences.append(layer)
        elif isinstance(layer, ILoopOutputLayer):
            step.outputs.append(layer)
            self.makers[layer.outputs[0]] = step, around
        return step

    def _connect(self, layer: ILayer, step: Step, scope: Scope) -> None:
        for position, tensor in enumerate(layer.inputs):
            if tensor is None:
                continue
            if isinstance(step, LoopStep) and self.scopes.varies_in(tensor, step.loop):
                self._root(tensor)
            else:
                self._edge(tensor, step, scope, position if isinstance(step, IfStep) else None)
        if isinstance(step, IfStep):
            self._edge(step.condition, step, scope, None)

    def _root(self, tensor: ITensor) -> None:
        if tensor in self.makers:
            step, scope = self.makers[tensor]
            self.regions[scope].roots[step] = None

    def _edge(self, tensor: ITensor, reader: Step, scope: Scope, branch: int | None) -> None:
        """Record that ``reader`` in ``scope`` depends on a tensor of the same region or of one around it."""
        if tensor not in self.makers:
            return
        maker, home = self.makers[tensor]
        if scope != home:
            loop = self.nesting.ancestor(scope, self.nesting.depth(home) + 1)
            assert loop is not None
            reader, branch = self.loops[loop], None
        region = self.regions[home]
        region.before.setdefault(reader, {})[maker] = None
        region.uses.setdefault(maker, []).append((reader, branch))

    def _arrange(self, region: _Region, block: Block) -> None:
        homes, order = _homes(region)
        for step in order:
            branch = homes[step]
            home = branch[0].branches[branch[1]] if branch else block
            home.steps.append(step)


def _in_order(region: _Region, pinned: Mapping[Step, Branch | None]) -> list[Step]:
    """The steps in topological order; ties are broken by the order in which their layers were added.

    Raises:
        CycleError: steps depend on each other, or on the conditional that they are pinned to.
    """
    before: dict[Step, Collection[Step]] = {step: region.before.get(step, ()) for step in region.ranks}
    for step, branch in pinned.items():
        if branch is not None:
            before[branch[0]] = {**dict.fromkeys(before[branch[0]]), step: None}
    order = ranked_order(before, region.ranks)
    if len(order) < len(before):
        TopologicalSorter(before).prepare()  # which finds the cycle
    return order


def _loop_feeds_itself(cycle: list[Step]) -> Finding:
    step = next(step for step in cycle if not isinstance(step, LayerStep))
    boundary = step.outputs[0]
    name = step.loop.name if isinstance(step, LoopStep) else step.conditional.name
    fix = "make two loops, or carry the value through a recurrence"
    return boundary.finding("NL207", f"{name!r} depends on its own output", reason("NL207"), fix)


# ---------------------------------------------------------------------------- branches


def _homes(region: _Region) -> tuple[dict[Step, Branch | None], list[Step]]:
    """The branch that each step goes into, which all of its uses have in common, and the steps in running order.

    An assertion, or a loop that is live only for its assertions, has no uses: it goes into the innermost branch that a
    step which it depends on is in.
    """
    try:
        order = _in_order(region, {})
    except CycleError as error:
        raise NetworkError(_loop_feeds_itself(error.args[1])) from None
    if not any(isinstance(step, IfStep) for step in order):
        return dict.fromkeys(order), order
    branches = _Branches(region, order, {})
    unused = [step for step in order if step not in region.uses and step not in region.roots]
    return _with_unused(region, branches, order, unused) if unused else (branches.homes, order)


def _with_unused(
    region: _Region, branches: _Branches, order: list[Step], unused: list[Step]
) -> tuple[dict[Step, Branch | None], list[Step]]:
    """The branch of each step and the order, if some steps have no uses."""
    pinned = branches.of_unused(order, unused)
    while True:
        try:
            order = _in_order(region, pinned)
        except CycleError as error:
            # a step that reads an output of the conditional, or what follows from it, is in none of its branches
            for step, reader in pairwise(error.args[1]):
                branch = pinned.get(step)
                if branch is not None and branch[0] is reader:
                    pinned[step] = branches.nesting.parent(branch)
        else:
            return _Branches(region, order, pinned).homes, order


class _Branches:
    """The branches of a region, and those that its steps go into.

    Attributes:
        nesting: the branches, each below the one that its conditional is in.
        homes: the branch of each step, or None outside of all; without those that are neither used nor pinned.
    """

    def __init__(self, region: _Region, order: list[Step], pinned: Mapping[Step, Branch | None]) -> None:
        self.region = region
        self.nesting = Ancestry[Branch]()
        self.homes: dict[Step, Branch | None] = {}
        for step in reversed(order):
            branches = [pinned[step]] if step in pinned else [None] if step in region.roots else []
            branches += [self._inside(*use) for use in region.uses.get(step, ()) if use[0] in self.homes]
            if branches:
                self.homes[step] = functools.reduce(self.nesting.common, branches)
                if isinstance(step, IfStep):
                    for branch in (0, 1):
                        self.nesting.add((step, branch), self.homes[step])

    def _inside(self, user: Step, branch: int | None) -> Branch | None:
        """The branch in which a use is: one of the user itself, or that which the user is in."""
        return self.homes[user] if branch is None or not isinstance(user, IfStep) else (user, branch)

    def of_unused(self, order: list[Step], unused: list[Step]) -> dict[Step, Branch | None]:
        """The innermost branch that a step which each unused step depends on is in."""
        branches: dict[Step, Branch | None] = {}
        for step in order:
            makers = (branches[other] for other in self.region.before.get(step, ()))
            branches[step] = self.homes[step] if step in self.homes else functools.reduce(self._deeper, makers, None)
        return {step: branches[step] for step in unused}

    def _deeper(self, first: Branch | None, second: Branch | None) -> Branch | None:
        """The branch that is inside the other; if neither is, the one that both are in."""
        common = self.nesting.common(first, second)
        return max(first, second, key=self.nesting.depth) if common in (first, second) else common
