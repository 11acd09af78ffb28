"""The entries of timing caches, and the decisions of a network among them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass

from netloop.compiler.passes import PASSES, RULE, Forms
from netloop.model.graph.attributes import check_instance

KEY_SIZE = 16


@dataclass(frozen=True)
class TimingCacheKey:
    """The key of a decision in a timing cache.

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
    """The tactic that was chosen, and its time.

    Attributes:
        tacticHash: the hash of the fastest tactic: in a build's entries, of the form of a pass.
        timingMSec: its time in milliseconds: in a build's entries, that of a call of the network.
    """

    tacticHash: int
    timingMSec: float


Entries = MutableMapping[TimingCacheKey, TimingCacheValue]


@dataclass(frozen=True)
class Decisions:
    """The decisions about one program on one machine, in the entries of a timing cache.

    Attributes:
        entries: the entries.
        machine: the machine.
        digest: the digest of the program; None for one that has none, about which nothing is remembered.
    """

    entries: Entries
    machine: str
    digest: str | None

    def known(self, names: Iterable[str]) -> dict[str, str]:
        """The decided forms of some passes, by name; a form that the pass does not have is not decided."""
        texts = dict[str, str]()
        for name in names:
            value = None if self.digest is None else self.entries.get(self._key(name))
            forms = {hash_of(form): form for form in (RULE, *PASSES[name].alternatives)}
            if value is not None and value.tacticHash in forms:
                texts[name] = forms[value.tacticHash]
        return texts

    def remember(self, forms: Forms, seconds: float) -> None:
        """Add the decided forms of passes, with the time of a call in seconds."""
        for name, form in forms.items() if self.digest is not None else ():
            self.entries[self._key(name)] = TimingCacheValue(hash_of(form), seconds * 1e3)

    def _key(self, name: str) -> TimingCacheKey:
        text = "\0".join([self.machine, self.digest or "", name])
        return TimingCacheKey(hashlib.sha256(text.encode()).digest()[:KEY_SIZE])


def hash_of(form: str) -> int:
    """The 64-bit hash of a form."""
    return int.from_bytes(hashlib.sha256(form.encode()).digest()[:8], "big")
