"""Walks over the region tree, and the tensors that depend on weights only."""

from collections.abc import Iterator

from netloop.graph.layer import Operation
from netloop.graph.tensor import ITensor
from netloop.nest.tree import Block, IfStep, LayerStep, LoopStep, Step


def walk(block: Block) -> Iterator[Step]:
    """All steps of a block and of the blocks inside it, in running order; a loop or conditional precedes its inside."""
    stack = [iter(block.steps)]
    while stack:
        step = next(stack[-1], None)
        if step is None:
            stack.pop()
            continue
        yield step
        inside = [step.body] if isinstance(step, LoopStep) else step.branches if isinstance(step, IfStep) else ()
        stack.extend(iter(each.steps) for each in reversed(inside))


def weights_alone(block: Block) -> set[ITensor]:
    """The tensors that are constants, or computed from constants only by layers that always compute the same."""
    found: set[ITensor] = set()
    for step in walk(block):
        if isinstance(step, LayerStep) and isinstance(step.layer, Operation):
            layer = step.layer
            if layer.is_foldable and not layer.on_host and found.issuperset(step.reads):
                found.update(step.writes)
    return found
