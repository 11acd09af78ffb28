"""A conditional as If."""

from __future__ import annotations

from typing import TYPE_CHECKING

from netloop.nest import IfStep
from netloop.onnx_graph.graph import Graph, Value
from netloop.onnx_graph.scope import Scope

if TYPE_CHECKING:
    from netloop.onnx_graph.exporter import NetworkExporter


def export_conditional(walk: NetworkExporter, step: IfStep, scope: Scope) -> None:
    """Add an If; where the condition is known, the branch taken alone."""
    known = walk.types[step.condition].value
    if known is None:
        return _choose(walk, step, scope)
    taken = 0 if known else 1
    walk.run(step.branches[taken].steps, scope)
    for output, result in zip(step.writes, step.results(taken), strict=True):
        scope.values[output] = walk.read(result, scope)
    return None


def _choose(walk: NetworkExporter, step: IfStep, scope: Scope) -> None:
    if not step.outputs:
        return
    branches = [_branch(walk, step, scope, branch) for branch in (0, 1)]
    made = [Value(walk.types[each].dtype, each.name) for each in step.writes]
    condition = walk.read(step.condition, scope)
    make = walk.make(scope, name=step.conditional.name)
    make.node("If", [condition], made, then_branch=branches[0], else_branch=branches[1])
    scope.values.update(zip(step.writes, made, strict=True))


def _branch(walk: NetworkExporter, step: IfStep, scope: Scope, branch: int) -> Graph:
    graph = Graph(f"{step.conditional.name} {('then', 'else')[branch]}")
    inside = scope.inside(graph)
    walk.run(step.branches[branch].steps, inside)
    make = walk.make(inside, name=step.conditional.name)
    for output, result in zip(step.writes, step.results(branch), strict=True):
        type, wanted = walk.types[result], walk.types[output]
        value = make.fitted(walk.read(result, inside), type, wanted)
        graph.give(value, type if wanted.is_tensor else wanted, result.name)
    return graph
