"""Where an engine comes from."""

from __future__ import annotations

from dataclasses import dataclass

from netloop.api.enums import ProfilingVerbosity
from netloop.api.logger import ILogger
from netloop.api.profile import IOptimizationProfile
from netloop.passes import chosen


@dataclass(frozen=True)
class Origin:
    """What an engine keeps of its build.

    Attributes:
        logger: what is told of errors; None if nothing is.
        profiles: the optimization profiles.
        verbosity: how much the engine tells of its layers.
        max_trips: how many trips a loop may make, each time that it is entered; None for any number.
        interruptible: whether a long loop can be interrupted.
        marked_only: whether only the weights that are marked may be replaced.
        absent: the numbers of the constant layers whose weights were not in the plan.
        passes: the names of the passes that its programs are made with.
        donated: the names of the inputs whose memory a call may take.
        tactic_sources: where TensorRT's kernels were to come from, a bit each.
    """

    logger: ILogger | None = None
    profiles: tuple[IOptimizationProfile, ...] = ()
    verbosity: ProfilingVerbosity = ProfilingVerbosity.LAYER_NAMES_ONLY
    max_trips: int | None = None
    interruptible: bool = False
    marked_only: bool = False
    absent: frozenset[int] = frozenset()
    passes: frozenset[str] = chosen(None)
    donated: frozenset[str] = frozenset()
    tactic_sources: int = 0b11
