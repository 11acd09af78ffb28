"""Timing caches. No kernel is timed here, so a build adds nothing to one; it holds what it is given."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from netloop.api.memory import IHostMemory
from netloop.diagnostics import FileFormatError
from netloop.graph.layer import check_instance
from netloop.plan.json_reader import JsonValue, from_json, to_json

FORMAT = "netloop timing cache"
KEY_SIZE = 16


@dataclass(frozen=True)
class TimingCacheKey:
    """The number of a kernel in a cache, of 16 bytes.

    Attributes:
        data: the bytes.
    """

    data: bytes

    @staticmethod
    def parse(text: str) -> TimingCacheKey:
        """The key that a text of 32 hexadecimal digits stands for, with or without ``0x``.

        Raises:
            ValueError: it stands for none.
        """
        digits = check_instance("text", text, str).removeprefix("0x")
        if len(digits) != 2 * KEY_SIZE:
            raise ValueError(f"a key has {2 * KEY_SIZE} hexadecimal digits, not {text!r}")
        return TimingCacheKey(bytes.fromhex(digits))

    def __str__(self) -> str:
        return f"0x{self.data.hex()}"


@dataclass
class TimingCacheValue:
    """What is known of a kernel.

    Attributes:
        tacticHash: which tactic is the fastest.
        timingMSec: its time in milliseconds.
    """

    tacticHash: int
    timingMSec: float


class ITimingCache:
    """The times of kernels: nothing but what ``update`` and ``combine`` brought.

    What saves time in the next process is JAX's own cache of compiled programs, ``jax_compilation_cache_dir``.
    """

    def __init__(self) -> None:
        self._entries: dict[TimingCacheKey, TimingCacheValue] = {}

    def serialize(self) -> IHostMemory:
        """The cache as bytes, ready to be written to a file."""
        entries = [[str(key), str(each.tacticHash), repr(each.timingMSec)] for key, each in self._entries.items()]
        return IHostMemory(to_json({"format": FORMAT, "entries": entries}))

    def combine(self, input_cache: ITimingCache, ignore_mismatch: bool) -> bool:
        """Take what another cache has beside; True."""
        other = check_instance("input_cache", input_cache, ITimingCache)
        self._entries = {**other._entries, **self._entries}
        return True

    def reset(self) -> bool:
        """Forget everything; True."""
        self._entries.clear()
        return True

    def queryKeys(self) -> list[TimingCacheKey]:
        """The keys, in the order in which they came."""
        return list(self._entries)

    def query(self, key: TimingCacheKey) -> TimingCacheValue:
        """The value of a key; one with the hash 0 and no time if there is none."""
        return self._entries.get(check_instance("key", key, TimingCacheKey), TimingCacheValue(0, math.nan))

    def update(self, key: TimingCacheKey, value: TimingCacheValue) -> bool:
        """Set the value of a key; True."""
        check_instance("value", value, TimingCacheValue)
        tactic, time = check_instance("tacticHash", value.tacticHash, int), float(value.timingMSec)
        self._entries[check_instance("key", key, TimingCacheKey)] = TimingCacheValue(tactic, time)
        return True


def read_timing_cache(data: Any) -> ITimingCache | None:
    """The cache that some bytes are; an empty one for no bytes, and None if they are none that netloop wrote."""
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
