"""How deep loops and conditionals of a compiled network may be nested, and how often its layers may be lowered."""

from collections.abc import Iterator

from netloop.model.graph.tensor import ITensor
from netloop.model.layers.assertion import IAssertionLayer
from netloop.model.layers.loop import IIteratorLayer, ILoopOutputLayer, IRecurrenceLayer
from netloop.model.nest import Block, IfStep, LayerStep, LoopStep, Step, depths_of, walk
from netloop.values.diagnostics import Finding, NetworkError
from netloop.values.enums import TripLimit

DEEPEST_NEST = 100
"""The deepest nest of an engine. XLA's compiler crashes on 200 loops in each other, and takes 5 seconds for 100
conditionals, and 22 for 150."""

DEEPEST_PURE_NEST = 32
"""The deepest nest of a pure function. JAX's transformations meet Python's recursion limit in a nest of 64, and that
limit is the caller's."""

MOST_COPIES = 1 << 13
"""The most times that one layer is lowered. A loop lowers the layers again that its last value or its WHILE limit needs
after the iterations, and so do the loops around it: tracing 4,096 copies of a loop has taken 49 seconds."""


def require_shallow(block: Block, deepest: int = DEEPEST_NEST, max_trips: int | None = None) -> None:
    """Refuse a network that is nested too deep for JAX and XLA.

    Args:
        block: its region tree.
        deepest: the number of loops and conditionals that may be nested.
        max_trips: the largest number of iterations of a loop, if there is one.

    Raises:
        NetworkError: its loops and conditionals are nested too deep, or its programs would have too many copies of a
            loop or conditional.
    """
    depths = depths_of(block)
    nests = [depth for depth in depths if not isinstance(depth, LayerStep)]
    if not nests:
        return
    innermost = max(nests, key=depths.__getitem__)
    if depths[innermost] >= deepest:
        what = f"is inside {depths[innermost]} other loops and conditionals"
        raise _refusal(innermost, what, f"JAX and XLA can fail if more than {deepest} are nested")
    for step in reversed(nests):
        # from the inside out, as each would otherwise recurse into the steps inside it
        _ = step.reads
    copies = _copies(block, can_fail=max_trips is not None or any(map(_can_fail, walk(block))))
    most = max(nests, key=copies.__getitem__)
    if copies[most] > MOST_COPIES:
        what = f"is compiled {copies[most]} times, as values after the last iteration of the loops around it need it"
        raise _refusal(most, what, f"a program has at most {MOST_COPIES} copies of a loop or conditional")


def _copies(block: Block, can_fail: bool) -> dict[Step, int]:
    """How often each step is lowered."""
    copies = dict.fromkeys(block.steps, 1)
    for step in walk(block):
        for inner_step in (inner_step for block in step.blocks for inner_step in block.steps):
            # a branch is lowered once; what a loop lowers, and how often, is counted below
            copies[inner_step] = copies[step] if isinstance(step, IfStep) else 0
        if isinstance(step, LoopStep):
            for inner_step in _lowered(step, can_fail):
                copies[inner_step] += copies[step]
    return copies


def _lowered(step: LoopStep, can_fail: bool) -> Iterator[Step]:
    """The steps of a loop's body, each as often as it is lowered."""
    yield from step.iteration
    for tensor in _needed_again(step):
        yield from step.body.needed([tensor])
    if can_fail and (limit := step.loop.limit(TripLimit.WHILE)) is not None:
        # an error flag goes with the condition from one iteration to the next, after one that precedes the first
        yield from step.body.needed([limit.tensor(0)])


def _needed_again(step: LoopStep) -> Iterator[ITensor]:
    """The tensors of a loop that are computed in addition to its iterations."""
    for output in step.outputs:
        if not output.stacks and not isinstance(output.tensor(0).producer, IRecurrenceLayer):
            yield output.tensor(0)
    limit = step.loop.limit(TripLimit.WHILE)
    if limit is not None:
        yield limit.tensor(0)


def _can_fail(step: Step) -> bool:
    """Whether a step may need error flags."""
    if isinstance(step, LayerStep):
        return isinstance(step.layer, IIteratorLayer | IAssertionLayer)
    return any(isinstance(layer, ILoopOutputLayer) and layer.stacks for layer in step.layers)


def _refusal(step: Step, what: str, why: str) -> NetworkError:
    assert not isinstance(step, LayerStep)
    at = step.loop if isinstance(step, LoopStep) else step.conditional
    where = f"{at.source_location}, {type(at).__name__} {at.name!r}"
    return NetworkError(Finding("NL502", f"{at.name!r} {what}", where, why, at=at))
