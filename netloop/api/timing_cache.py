"""Timing caches: they hold the entries that a script adds. A build adds none, because netloop times no kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from netloop.api.memory import IHostMemory
from netloop.diagnostics import FileFormatError
from netloop.graph.attributes import check_instance
from netloop.plan.json_reader import JsonValue, from_json, to_json

FORMAT = "netloop timing cache"
KEY_SIZE = 16


@dataclass(frozen=True)
class TimingCacheKey:
    """The key of a kernel in a timing cache.

    Attributes:
        data: 16 bytes.
    """

    data: bytes

    @staticmethod
    def parse(text: str) -> TimingCacheKey:
        """Parse a key of 32 hexadecimal digits, with or without ``0x``.

        Raises:
            ValueError: the text is not such a key.
        """
        digits = check_instance("text", text, str).removeprefix("0x")
        if len(digits) != 2 * KEY_SIZE:
            raise ValueError(f"a key has {2 * KEY_SIZE} hexadecimal digits, not {text!r}")
        return TimingCacheKey(bytes.fromhex(digits))

    def __str__(self) -> str:
        return f"0x{self.data.hex()}"


@dataclass
class TimingCacheValue:
    """The timing of a kernel.

    Attributes:
        tacticHash: the hash of the fastest tactic.
        timingMSec: its time in milliseconds.
    """

    tacticHash: int
    timingMSec: float


class ITimingCache:
    """Timings of kernels, added by ``update`` and ``combine`` only.

    To save compilation time in the next process, use JAX's cache of compiled programs, ``jax_compilation_cache_dir``.
    """

    def __init__(self) -> None:
        self._entries: dict[TimingCacheKey, TimingCacheValue] = {}

    def serialize(self) -> IHostMemory:
        """The bytes of the cache, ready to be written to a file."""
        entries = [[str(key), str(each.tacticHash), repr(each.timingMSec)] for key, each in self._entries.items()]
        return IHostMemory(to_json({"format": FORMAT, "entries": entries}))

    def combine(self, input_cache: ITimingCache, ignore_mismatch: bool) -> bool:
        """Add the entries of another cache whose keys are new; True."""
        other = check_instance("input_cache", input_cache, ITimingCache)
        self._entries = {**other._entries, **self._entries}
        return True

    def reset(self) -> bool:
        """Delete all entries; True."""
        self._entries.clear()
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
    made, raw = ITimingCache(), bytes(memoryview(data))
    if not raw:
        return made
    try:
        fields = from_json(raw, FORMAT).fields(("format", "entries"))
        if fields["format"].value != FORMAT:
            return None
        for node in fields["entries"].items():
            made.update(*_entry(node))
    except (FileFormatError, ValueError):
        return None
    return made


def _entry(node: JsonValue) -> tuple[TimingCacheKey, TimingCacheValue]:
    key, tactic, time = node.items()
    return TimingCacheKey.parse(key.text()), TimingCacheValue(int(tactic.text()), float(time.text()))
