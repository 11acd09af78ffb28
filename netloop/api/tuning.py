"""The arguments by which a script has an engine of any kind tuned."""

import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

from netloop.api.timing_cache import ITimingCache, cache_of
from netloop.compiler.tuning import Tuning
from netloop.model.graph.attributes import check_instance
from netloop.values.checked_attributes import seconds

Tune = bool | Mapping[str, Any]
"""Whether an engine is tuned, or the inputs of a typical call to tune it with."""
CacheFile = ITimingCache | str | os.PathLike[str] | None
"""A timing cache, or the path of its file."""


@contextmanager
def tuning_of(
    tune: Tune, timing_cache: CacheFile, tuning_seconds: float, step: Callable[[str], None] = lambda what: None
) -> Generator[Tuning | None]:
    """The tuning that some arguments ask for, in which the timing cache is open; None if rules decide.

    Raises:
        TypeError, ValueError: an argument is not of its range.
        FileFormatError, OSError: the timing cache is not one, or cannot be read or written.
    """
    budget = seconds(endless=True)("tuning_seconds", tuning_seconds)
    inputs = None if isinstance(tune, bool) else dict(check_instance("tune", tune, Mapping))
    if tune is False and timing_cache is None:
        yield None
        return
    with cache_of(timing_cache) as cache:
        yield Tuning(cache, tune is not False, inputs=inputs, seconds=budget, step=step)
