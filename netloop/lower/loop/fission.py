"""Which part of a loop's body can run for many trips at once: before the trips, or after them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from netloop.graph.infer import TypeTable
from netloop.graph.layer import Operation
from netloop.graph.tensor import ITensor
from netloop.layers.convolution import IConvolutionLayer, IDeconvolutionLayer
from netloop.layers.loop import IIteratorLayer
from netloop.layers.matrix import IEinsumLayer, IMatrixMultiplyLayer
from netloop.layers.rearrange import IShuffleLayer, ISqueezeLayer, IUnsqueezeLayer
from netloop.nest import Block, LayerStep, Step

PRODUCTS = IMatrixMultiplyLayer, IEinsumLayer, IConvolutionLayer, IDeconvolutionLayer
VIEWS = IShuffleLayer, ISqueezeLayer, IUnsqueezeLayer
"""Layers that move nothing where what reads them is compiled with them; a slice of a row keeps that from vectors."""

SMALLEST_PRODUCT = 1 << 10
"""The operand of a product that stays the same has to have so many elements for the product to be worth being moved."""
CACHED = 1 << 22
"""So many bytes stay in a cache: what is computed for all trips at once may be as large."""
CHUNK = 1 << 21
"""The bytes that are computed at once where all trips together would take more than stays in the cache."""
FEWEST_TRIPS = 4
"""Fewer trips at once are not worth it."""


@dataclass(frozen=True)
class Parts:
    """A body in three parts.

    Attributes:
        core: the steps that run trip by trip.
        rows: what is kept of the core for each trip.
        chunk: how many trips run at once.
        ahead: steps that read no state; they run for many trips at once, before the core.
        made: what is kept of them.
        behind: steps that feed no state; they run for many trips at once, after the core.
    """

    core: list[Step]
    rows: list[ITensor]
    chunk: int
    ahead: list[LayerStep] = field(default_factory=list[LayerStep])
    made: list[ITensor] = field(default_factory=list[ITensor])
    behind: list[LayerStep] = field(default_factory=list[LayerStep])


def split(body: Sequence[Step], states: Sequence[ITensor], following: Sequence[ITensor], rows: Sequence[ITensor],
          types: TypeTable, trips: int) -> Parts:  # fmt: skip
    """A body in parts, if that pays.

    Args:
        body: its steps.
        states: the values of the recurrences in a trip.
        following: their next values.
        rows: what the stacked outputs take.
        types: the types of the tensors.
        trips: the number of trips.
    """
    steps = [step for step in body if not _is_iterator(step)]
    products = [step for step in steps if _is_dear(step, {*states, *_writes(body)}, types)]
    ahead = _ahead(steps, {*states, *_writes(steps)}, products)
    rest = [step for step in steps if step not in ahead]
    behind = _behind(rest, following, products)
    core = [step for step in rest if step not in behind]
    late = _writes(behind)
    wanted = dict.fromkeys([*(each for step in behind for each in step.reads), *rows])
    needed = {*(each for step in core for each in step.reads), *following, *wanted}
    made = [each for each in _writes(ahead) if each in needed]
    moved = _writes([*ahead, *behind])
    of_core = {*_writes(core), *states, *(each for each in rows if each not in moved)}
    kept = [each for each in wanted if each in of_core]
    chunk = _chunk(trips, sum(types[each].nbytes for each in [*made, *(kept if behind else ())]))
    if chunk < FEWEST_TRIPS or not (ahead or behind):
        return Parts(list(body), list(rows), trips)
    return Parts(core, [each for each in kept if each not in late], chunk, ahead, made, behind)


def _is_iterator(step: Step) -> bool:
    return isinstance(step, LayerStep) and isinstance(step.layer, IIteratorLayer)


def _writes(steps: Iterable[Step]) -> dict[ITensor, None]:
    return {tensor: None for step in steps for tensor in step.writes}


def _ahead(steps: Sequence[Step], varying: set[ITensor], products: Sequence[Step]) -> list[LayerStep]:
    """The steps that need nothing of the trips before, as far as products make them worth it."""
    free: list[LayerStep] = []
    for step in steps:
        if isinstance(step, LayerStep) and _may_move(step) and varying.isdisjoint(step.reads):
            free.append(step)
            varying = varying.difference(step.writes)
    found = _without_last_views(_from_products(free, products))
    return _with_sources(found, free)


def _behind(steps: Sequence[Step], following: Sequence[ITensor], products: Sequence[Step]) -> list[LayerStep]:
    """The steps that no state needs, as far as they follow from products; none if one of these has to stay."""
    core = Block(list(steps)).needed(following, assertions=True)
    rest = [step for step in steps if step not in core]
    found = _from_products(rest, products)
    layers = [step for step in found if isinstance(step, LayerStep) and _may_move(step)]
    return layers if len(layers) == len(found) else []


def _may_move(step: LayerStep) -> bool:
    layer = step.layer
    return isinstance(layer, Operation) and layer.is_foldable and not layer.on_host


S = TypeVar("S", bound=Step)


def _from_products(steps: Iterable[S], products: Sequence[Step]) -> list[S]:
    """The products among some steps, and what follows from them."""
    reached: set[ITensor] = set()
    found: list[S] = []
    for step in steps:
        if step in products or not reached.isdisjoint(step.reads):
            found.append(step)
            reached.update(step.writes)
    return found


def _is_dear(step: Step, varying: set[ITensor], types: TypeTable) -> bool:
    """Whether a step is a product of what varies and of something large that does not: many at once become one."""
    if not isinstance(step, LayerStep) or not isinstance(step.layer, PRODUCTS):
        return False
    settled = [each for each in step.reads if each not in varying]
    return max((types[each].volume for each in settled), default=0) >= SMALLEST_PRODUCT


def _without_last_views(steps: list[LayerStep]) -> list[LayerStep]:
    """Steps without the views at their end: these are as well made trip by trip."""
    found: list[LayerStep] = []
    read: set[ITensor] = set()
    for step in reversed(steps):
        if not isinstance(step.layer, VIEWS) or not read.isdisjoint(step.writes):
            found.append(step)
            read.update(step.reads)
    return found[::-1]


def _with_sources(steps: list[LayerStep], free: list[LayerStep]) -> list[LayerStep]:
    """Steps with all that they need of the free ones."""
    needed = {tensor for step in steps for tensor in step.reads}
    found: list[LayerStep] = []
    for step in reversed(free):
        if step in steps or not needed.isdisjoint(step.writes):
            found.append(step)
            needed.update(step.reads)
    return found[::-1]


def _chunk(trips: int, row: int) -> int:
    """How many trips run at once, where each takes so many bytes; the trips are divided evenly if that is easy."""
    if trips * row <= CACHED:
        return trips
    most = min(trips, CHUNK // row)
    return next((each for each in range(most, most // 2, -1) if trips % each == 0), most)
