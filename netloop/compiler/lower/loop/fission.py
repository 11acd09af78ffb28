"""Loop fission: split a loop body into a prologue and an epilogue, batched over iterations, and what stays in the loop.

A product with fixed weights takes most of its time for reading them. Batched over iterations it reads them once: 2.3
times as fast for an LSTM of 512 with one row (benchmarks/RESULTS.md). Only products and the layers between them move;
element-wise layers without a product among them lose when they are batched (benchmarks/notes.md).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from netloop.model.graph.infer import TypeTable
from netloop.model.graph.layer import Operation
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.convolution import IConvolutionLayer, IDeconvolutionLayer
from netloop.model.layers.loop import IIteratorLayer
from netloop.model.layers.matrix import IEinsumLayer, IMatrixMultiplyLayer
from netloop.model.layers.rearrange import Rearrangement
from netloop.model.nest import Block, LayerStep, LoopStep, Step

PRODUCTS = IMatrixMultiplyLayer, IEinsumLayer, IConvolutionLayer, IDeconvolutionLayer

SMALLEST_PRODUCT = 1 << 10
"""The least number of elements of the loop-invariant operand for which a product is worth moving."""
CACHED = 1 << 22
"""The bytes that stay in a cache: up to this size, all iterations are batched at once."""
CHUNK = 1 << 21
"""The bytes of a chunk of iterations, if all of them would not stay in the cache."""
MOST_BYTES = 1 << 30
"""The bytes of the values of all iterations on devices without such a cache."""
FEWEST_TRIPS = 4
"""The least number of iterations that are worth batching."""


@dataclass(frozen=True)
class Parts:
    """A loop body in three parts.

    Attributes:
        body: the steps that run iteration by iteration.
        kept: the tensors of the body that are kept for each iteration.
        chunk: the number of iterations that are batched.
        prologue: steps that read no state; they run before the body, for a chunk of iterations at once.
        prologue_values: the tensors of the prologue that are kept.
        epilogue: steps that feed no state; they run after the body, for a chunk of iterations at once.
    """

    body: list[Step]
    kept: list[ITensor]
    chunk: int
    prologue: list[LayerStep] = field(default_factory=list[LayerStep])
    prologue_values: list[ITensor] = field(default_factory=list[ITensor])
    epilogue: list[LayerStep] = field(default_factory=list[LayerStep])


def split_body(
    loop: LoopStep, types: TypeTable, trips: int, chunk_bytes: int | None = None, is_cached: bool = True
) -> Parts:
    """The body of a loop in three parts if that pays, else as a whole.

    ``chunk_bytes`` replaces ``CHUNK``. Where ``is_cached`` is False no cache holds a chunk, and a loop over chunks only
    costs launches: then all iterations are batched up to ``MOST_BYTES``.
    """
    body, rows, following = loop.iteration, loop.rows, loop.next_states
    steps = [step for step in body if not (isinstance(step, LayerStep) and isinstance(step.layer, IIteratorLayer))]
    varying = {*loop.states, *_writes(body)}
    products = [step for step in steps if _is_expensive(step, varying, types)]
    prologue = _prologue(steps, {*loop.states, *_writes(steps)}, products)
    rest = _without(steps, prologue)
    epilogue = _epilogue(rest, following, products)
    core = _without(rest, epilogue)
    late = _writes(epilogue)
    wanted = dict.fromkeys([*(tensor for step in epilogue for tensor in step.reads), *rows])
    needed = {*(tensor for step in core for tensor in step.reads), *following, *wanted}
    prologue_values = [write for write in _writes(prologue) if write in needed]
    moved = _writes([*prologue, *epilogue])
    # a row may also come from outside the loop, the same in each iteration
    of_core = {*_writes(core), *loop.states, *(row for row in rows if row not in moved)}
    kept = [tensor for tensor in wanted if tensor in of_core]
    row = sum(types[tensor].nbytes for tensor in [*prologue_values, *(kept if epilogue else ())])
    of_rule = (CACHED, CHUNK) if is_cached else (MOST_BYTES, MOST_BYTES)
    chunk = _chunk(trips, row, *((2 * chunk_bytes, chunk_bytes) if chunk_bytes else of_rule))
    if chunk < FEWEST_TRIPS or not (prologue or epilogue):
        return Parts(list(body), list(rows), trips)
    return Parts(core, [tensor for tensor in kept if tensor not in late], chunk, prologue, prologue_values, epilogue)


def _without(steps: Iterable[Step], removed: Iterable[Step]) -> list[Step]:
    left_out = set(removed)
    return [step for step in steps if step not in left_out]


def _writes(steps: Iterable[Step]) -> dict[ITensor, None]:
    return {tensor: None for step in steps for tensor in step.writes}


def _prologue(steps: Sequence[Step], varying: set[ITensor], products: Sequence[Step]) -> list[LayerStep]:
    """The steps that need nothing of earlier iterations, if products make moving them worthwhile."""
    free: list[LayerStep] = []
    for step in steps:
        if isinstance(step, LayerStep) and may_run_at_once(step) and varying.isdisjoint(step.reads):
            free.append(step)
            varying.difference_update(step.writes)
    # rearrangements at the end of a body cost nothing: XLA compiles them with the layer that reads them. A slice of a
    # row does cost: XLA computes the layer that reads it without vector instructions
    moved = [step for step in _from_products(free, products) if not isinstance(step.layer, Rearrangement)]
    needed = set(Block(list(free)).needed(_writes(moved)))
    return [step for step in free if step in needed]


def _epilogue(steps: Sequence[Step], following: Sequence[ITensor], products: Sequence[Step]) -> list[LayerStep]:
    """The products that no state needs, and all that follows from them; none if a step among these cannot move."""
    core = Block(list(steps)).needed(following, assertions=True)
    rest = _without(steps, core)
    result = _from_products(rest, products)
    layers = [step for step in result if isinstance(step, LayerStep) and may_run_at_once(step)]
    return layers if len(layers) == len(result) else []


def may_run_at_once(step: LayerStep) -> bool:
    """Whether a step may run for all iterations at once."""
    # random numbers depend on the number of the iteration, and a host layer cannot be batched
    layer = step.layer
    return isinstance(layer, Operation) and layer.is_foldable and not layer.on_host


S = TypeVar("S", bound=Step)


def _from_products(steps: Iterable[S], products: Sequence[Step]) -> list[S]:
    """The products among some steps, and the steps that follow from them."""
    reached: set[ITensor] = set()
    results: list[S] = []
    first = set(products)
    for step in steps:
        if step in first or not reached.isdisjoint(step.reads):
            results.append(step)
            reached.update(step.writes)
    return results


def _is_expensive(step: Step, varying: set[ITensor], types: TypeTable) -> bool:
    """Whether a step is a product with a large loop-invariant operand: batched, many of them become one product."""
    if not isinstance(step, LayerStep) or not isinstance(step.layer, PRODUCTS):
        return False
    invariant = [tensor for tensor in step.reads if tensor not in varying]
    return max((types[tensor].volume for tensor in invariant), default=0) >= SMALLEST_PRODUCT


def _chunk(trips: int, row: int, cached: int, size: int) -> int:
    """The number of iterations to batch, of ``row`` bytes each; a divisor of the trip count if there is a large one.

    Up to ``cached`` bytes that is all of them, and of more as many as have ``size`` bytes.
    """
    # a result that leaves the cache, or memory that is paged in at each call, costs more than batching gains
    if trips * row <= cached:
        return trips
    most = min(trips, size // row)
    return next((index for index in range(most, most // 2, -1) if trips % index == 0), most)
