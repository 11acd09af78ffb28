"""Error flags: integers next to the values of a compiled program, which cannot raise.

A flag is 0 for a valid value, else the number of a finding in the program's ``ErrorTable``. It goes where the value
goes, so that an error counts only if an output needs the poisoned value. A value that cannot fail has no flag.
"""

from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp

from netloop.diagnostics import Finding


def first_error(*flags: Any) -> Any:
    """The first of some error flags that is not 0; None if all of them are None."""
    found: Any = None
    for flag in flags:
        if found is None:
            found = flag
        elif flag is not None:
            found = jnp.where(found == 0, flag, found)
    return None if found is None else jnp.int32(found)


@dataclass
class ErrorTable:
    """The findings that the error flags of a program stand for, counted from 1."""

    findings: list[Finding] = field(default_factory=list[Finding])
    _numbers: dict[Any, int] = field(default_factory=dict[Any, int])

    def flag(self, failed: Any, finding: Finding) -> Any:
        """The number of a finding if ``failed``, else 0."""
        # a step may be traced more than once, as a WHILE condition is before the loop and in it
        number = self._numbers.setdefault((finding.at, finding.what), len(self._numbers) + 1)
        if number > len(self.findings):
            self.findings.append(finding)
        return jnp.where(failed, jnp.int32(number), jnp.int32(0))

    def finding(self, flag: Any) -> Finding:
        """The finding that an error flag other than 0 stands for."""
        return self.findings[int(flag) - 1]
