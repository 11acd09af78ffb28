"""Timing caches: what builds have measured, to be used by later builds."""

from __future__ import annotations

import math
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from netloop.api.memory import IHostMemory
from netloop.compiler.tuning import TimingCacheKey, TimingCacheValue, this_machine
from netloop.compiler.tuning.entries import Entries
from netloop.model.graph.attributes import check_instance
from netloop.model.plan.json_reader import JsonValue, from_json, to_json
from netloop.process.atomic_write import write_whole
from netloop.process.file_reading import read_regular
from netloop.values.checked_attributes import CheckedAttributes
from netloop.values.diagnostics import FileFormatError, Finding, reason

FORMAT = "netloop timing cache"


class ITimingCache(CheckedAttributes):
    """The forms of passes that were fastest for networks on machines, with their times.

    A build with ``builder_optimization_level`` 3 uses what it finds here, and one with 4 or 5 adds what it measures.
    An entry holds for one network, of given shapes, on one machine: processor, device, number of threads, compiler.

    Attributes:
        machines: the machines of the entries that builds added.
    """

    UNLISTED = frozenset({"is_of_here", "machines", "measured_on"})
    machines: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self._entries: dict[TimingCacheKey, TimingCacheValue] = {}

    def serialize(self) -> IHostMemory:
        """The bytes of the cache, ready to be written to a file."""
        entries = [[str(key), str(value.tacticHash), repr(value.timingMSec)] for key, value in self._entries.items()]
        return IHostMemory(to_json({"format": FORMAT, "machines": sorted(self.machines), "entries": entries}))

    def combine(self, input_cache: ITimingCache, ignore_mismatch: bool) -> bool:
        """Add the entries of another cache whose keys are new.

        False, without effect, if the other has entries of other machines; ``ignore_mismatch`` adds these too, and they
        are used where they were measured.
        """
        other = check_instance("input_cache", input_cache, ITimingCache)
        if not ignore_mismatch and self.machines and not other.machines <= self.machines:
            return False
        self._entries = {**other._entries, **self._entries}
        self.machines |= other.machines
        return True

    @property
    def is_of_here(self) -> bool:
        """Whether it has entries of this machine, or none that builds added."""
        return not self.machines or this_machine() in self.machines

    def measured_on(self, machine: str) -> Entries:
        """The entries, for a build on a machine to read and to add to."""
        self.machines |= {machine}
        return self._entries

    def reset(self) -> bool:
        """Delete all entries; True."""
        self._entries.clear()
        self.machines = frozenset()
        return True

    def queryKeys(self) -> list[TimingCacheKey]:
        """The keys, in the order in which they were added."""
        return list(self._entries)

    def query(self, key: TimingCacheKey) -> TimingCacheValue:
        """The value of a key; hash 0 and time NaN if there is none."""
        return self._entries.get(check_instance("key", key, TimingCacheKey), TimingCacheValue(0, math.nan))

    def update(self, key: TimingCacheKey, value: TimingCacheValue) -> bool:
        """Set the value of a key; True."""
        check_instance("value", value, TimingCacheValue)
        tactic, time = check_instance("tacticHash", value.tacticHash, int), float(value.timingMSec)
        self._entries[check_instance("key", key, TimingCacheKey)] = TimingCacheValue(tactic, time)
        return True


def read_timing_cache(data: Any) -> ITimingCache | None:
    """Parse a serialized timing cache: empty for no bytes, None if netloop did not write them."""
    cache, raw = ITimingCache(), bytes(memoryview(data))
    if not raw:
        return cache
    try:
        fields = from_json(raw, FORMAT).fields(("format", "entries"), ("machines",))
        if fields["format"].value != FORMAT:
            return None
        for node in fields["entries"].items():
            cache.update(*_entry(node))
        cache.machines = frozenset(
            value.text() for value in (fields["machines"].items() if "machines" in fields else ())
        )
    except (FileFormatError, ValueError):
        return None
    return cache


def _entry(node: JsonValue) -> tuple[TimingCacheKey, TimingCacheValue]:
    key, tactic, time = node.items()
    return TimingCacheKey.parse(key.text()), TimingCacheValue(int(tactic.text()), float(time.text()))


@contextmanager
def cache_of(given: ITimingCache | str | os.PathLike[str] | None) -> Generator[ITimingCache]:
    """A timing cache that is given, or that of a file, which is written at the end if the cache has grown.

    Raises:
        TypeError: it is something else.
        FileFormatError, OSError: the file is of another kind, or cannot be read or written.
    """
    if given is None or isinstance(given, ITimingCache):
        yield ITimingCache() if given is None else given
        return
    if not isinstance(given, str | os.PathLike):
        raise TypeError(f"timing_cache is an ITimingCache or a path, not {type(given).__name__}")
    cache = load_timing_cache(given)
    size = len(cache.queryKeys())
    yield cache
    if len(cache.queryKeys()) > size:
        save_timing_cache(cache, given)


def load_timing_cache(path: str | os.PathLike[str]) -> ITimingCache:
    """Return the timing cache of a file; an empty one if there is no file.

    Raises:
        FileFormatError: the file is not a timing cache, or is damaged.
        OSError: the file cannot be read, or is not a regular file.
    """
    try:
        cache = read_timing_cache(read_regular(path))
    except FileNotFoundError:
        if not os.fspath(path):  # no file can have this name later either
            raise
        return ITimingCache()
    if cache is None:
        what, fix = f"{os.fspath(path)!r} is not a timing cache, or is damaged", "delete it, or give another path"
        raise FileFormatError(Finding("NL717", what, "", reason("NL717"), fix))
    return cache


def save_timing_cache(cache: ITimingCache, path: str | os.PathLike[str]) -> None:
    """Merge a timing cache into a file, keeping entries that other processes added.

    Raises:
        FileFormatError, OSError: the file is of another kind, or cannot be read or written; it is unchanged.
    """
    cache.combine(load_timing_cache(path), ignore_mismatch=True)
    write_whole(Path(path), [memoryview(cache.serialize())])
