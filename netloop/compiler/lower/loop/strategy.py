"""The strategy by which a loop runs.

``choose_strategy`` chooses between scan and while. HOST is chosen before: ``execution/executable.py`` runs a network on
the host if ``lower/compilability.py`` refuses it, and then ``host/compiled_pieces.py`` decides for each loop.
"""

from dataclasses import dataclass
from enum import StrEnum

from netloop.compiler.lower.loop.facts import LoopFacts
from netloop.model.layers.loop import ILoop
from netloop.model.nest import LayerStep, LoopStep, walk
from netloop.values.enums import TripLimit

DEEPEST_SCAN = 24
"""Scans nested 64 deep have met Python's recursion limit inside JAX; while loops go deeper."""


class StrategyKind(StrEnum):
    """How a loop runs.

    Attributes:
        SCAN: as ``lax.scan``, with a trip count that is a compile-time constant.
        PREFIX: all iterations at once, with prefix scans of the states.
        KERNEL: as one kernel of a GPU, or one call of machine code on a CPU.
        WHILE: as ``lax.while_loop``, until a limit ends it.
        HOST: in Python, with a body that may be compiled.
    """

    SCAN = "scan"
    PREFIX = "prefix"
    KERNEL = "kernel"
    WHILE = "while"
    HOST = "host"


@dataclass(frozen=True)
class LoopStrategy:
    """How a loop runs, and why; ``trips`` is the trip count if it is known."""

    kind: StrategyKind
    why: str
    trips: int | None = None

    @property
    def name(self) -> str:
        """The kind as a word: ``"scan"``, ``"prefix"``, ``"kernel"``, ``"while"`` or ``"host"``."""
        return self.kind.value


def choose_strategy(loop: ILoop, facts: LoopFacts, depth: int) -> LoopStrategy:
    """The strategy for a loop of a compiled program: a scan if the trip count is known, else a while loop.

    Both take the same time on CPUs where the body is the same. Only a scan can be differentiated in reverse, split by
    loop fission, and unrolled. ``depth`` is the number of loops around the loop.
    """
    if loop.limit(TripLimit.WHILE) is not None:
        return LoopStrategy(StrategyKind.WHILE, "its WHILE limit is evaluated in each iteration")
    trips = facts.count(loop)
    if trips is None:
        return LoopStrategy(StrategyKind.WHILE, "its COUNT limit is known only in the call")
    if depth >= DEEPEST_SCAN:
        return LoopStrategy(StrategyKind.WHILE, f"it is nested more than {DEEPEST_SCAN} deep", trips)
    return LoopStrategy(StrategyKind.SCAN, "its COUNT limit is known, and it has no WHILE limit", trips)


def is_for_a_graph(step: LoopStep, facts: LoopFacts) -> bool:
    """Whether a CUDA graph gains by having a loop inside: its end is known only in the run, and it has products.

    The host waits 10 to 60 us in each iteration to look at the condition of a loop outside of a graph. Inside it is a
    node that runs the body again: 13 to 35 % faster for steps and decoders on an H100, where loops of a few
    element-wise layers and loops of known trip counts became 10 to 45 % slower.
    """
    is_open = step.loop.limit(TripLimit.WHILE) is not None or facts.count(step.loop) is None
    return is_open and any(isinstance(inner, LayerStep) and inner.layer.HAS_PRODUCTS for inner in walk(step.body))
