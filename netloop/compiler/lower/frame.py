"""The values at a point of a program while it is traced, and their error flags.

A compiled program cannot raise. An error flag is an integer next to a value: 0 if the value is valid, else the number
of a finding in the program's ``ErrorTable``. It goes where the value goes, so that an error counts only if an output
needs the poisoned value. A value that cannot fail has no flag.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import jax.numpy as jnp

from netloop.model.graph.tensor import ITensor
from netloop.model.layers.loop import ILoop
from netloop.values.diagnostics import Finding


def first_error(*flags: Any) -> Any:
    """The first of some error flags that is not 0; None if all of them are None."""
    result: Any = None
    for flag in flags:
        if result is None:
            result = flag
        elif flag is not None:
            result = jnp.where(result == 0, flag, result)
    return None if result is None else jnp.int32(result)


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


@dataclass
class Frame:
    """The state of tracing at a point; ``trips`` has the number of the current iteration of each enclosing loop.

    Attributes:
        values: the values of the tensors so far.
        error_flags: the error flag of each tensor whose value may be poisoned.
        status: the error flag of the assertions so far.
        ended: the enclosing loops that are evaluated one iteration past their last, for LAST_VALUE.
        is_iteration: whether the steps belong to an iteration that is made. If not, they only compute what a coming
            iteration would see, such as a WHILE condition, and no assertion is checked.
    """

    values: dict[ITensor, Any] = field(default_factory=dict[ITensor, Any])
    error_flags: dict[ITensor, Any] = field(default_factory=dict[ITensor, Any])
    trips: dict[ILoop, Any] = field(default_factory=dict[ILoop, Any])
    status: Any = 0
    ended: set[ILoop] = field(default_factory=set[ILoop])
    is_iteration: bool = True

    def inside(self) -> Self:
        """A frame for a branch or loop body: it sees all of this one and changes none of it."""
        # tracers of a branch or body must not leak into the frame around it
        values, flags, trips = dict(self.values), dict(self.error_flags), dict(self.trips)
        return replace(self, values=values, error_flags=flags, trips=trips, ended=set(self.ended))

    def error_flag(self, tensors: Iterable[ITensor | None]) -> Any:
        """The first error among some tensors; None if none of them can be poisoned."""
        return first_error(*(self.error_flags[tensor] for tensor in tensors if tensor in self.error_flags))

    def poison(self, tensors: Iterable[ITensor], flag: Any) -> None:
        """Set the error flag of tensors to that of their inputs, unless it is None."""
        if flag is not None:
            self.error_flags.update(dict.fromkeys(tensors, flag))
