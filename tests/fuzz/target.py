"""A target of the fuzzer, and the oracle that all targets share."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random

import netloop as trt
from netloop.values.diagnostics import CODES

Bytes = Callable[[bytes], bytes]
"""Changes some bytes, as the fuzzer does without knowing their structure."""

LONGEST_FINDING = 10_000
FAULT = "NL754"
"""The code of the errors that importers make of exceptions that they did not expect."""


@dataclass(frozen=True)
class Target:
    """Something that takes bytes, which may be anything.

    Attributes:
        name: its name.
        run: calls it with an input.
        seeds: valid inputs to start from.
        mutate: an input like another one, by chance; its third argument changes bytes without structure.
        tokens: words that inputs contain.
    """

    name: str
    run: Callable[[bytes], object]
    seeds: Callable[[], Iterable[bytes]]
    mutate: Callable[[bytes, Random, Bytes], bytes]
    tokens: tuple[str, ...] = ()

    def check(self, data: bytes) -> None:
        """Run the target: it may succeed, or raise an error of netloop with findings that are short and printable.

        Raises:
            Exception: it raised anything else, which is a find.
        """
        try:
            self.run(data)
        except trt.NetloopError as error:
            _check_findings(error.findings)


def _check_findings(findings: Iterable[trt.Finding]) -> None:
    assert findings, "an error has no findings"
    for finding in findings:
        if finding.code == FAULT:
            raise AssertionError("an importer has a fault") from finding.cause
        text = str(finding)
        assert len(text) < LONGEST_FINDING, f"a finding has {len(text)} characters"
        assert all(line.isprintable() for line in text.replace("\t", " ").split("\n")), f"{text!r} is not printable"
        assert finding.code in CODES, f"{finding.code} is no code"
