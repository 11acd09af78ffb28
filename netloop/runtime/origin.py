"""Where an engine comes from."""

from __future__ import annotations

from dataclasses import dataclass

from netloop.runtime.enums import ProfilingVerbosity
from netloop.runtime.logger import ILogger
from netloop.runtime.profile import IOptimizationProfile


@dataclass(frozen=True)
class Origin:
    """What an engine keeps of its build.

    Attributes:
        logger: what is told of errors; None if nothing is.
        profiles: the optimization profiles.
        verbosity: how much the engine tells of its layers.
        refittable: whether its weights may be replaced.
        max_trips: how many trips a loop may make, each time that it is entered; None for any number.
        interruptible: whether a long loop can be interrupted.
    """

    logger: ILogger | None = None
    profiles: tuple[IOptimizationProfile, ...] = ()
    verbosity: ProfilingVerbosity = ProfilingVerbosity.LAYER_NAMES_ONLY
    refittable: bool = True
    max_trips: int | None = None
    interruptible: bool = False
