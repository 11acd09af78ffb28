"""What is known at a point of a program while it is traced."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp

from netloop.diagnostics import Finding
from netloop.graph.tensor import ITensor
from netloop.layers.loop import ILoop


@dataclass
class Frame:
    """What is known at a point of a program.

    Attributes:
        values: the values of the tensors so far.
        trips: the number of the present trip in each loop around.
        status: 0 while all is well, else the number of the first failure, counted from 1.
        ended: the loops around of which the trip is the one after the last.
    """

    values: dict[ITensor, Any] = field(default_factory=dict[ITensor, Any])
    trips: dict[ILoop, Any] = field(default_factory=dict[ILoop, Any])
    status: Any = 0
    ended: set[ILoop] = field(default_factory=set[ILoop])

    def inside(self) -> Frame:
        """A frame for a branch or the body of a loop, which sees all of this one and changes none of it."""
        return Frame(dict(self.values), dict(self.trips), self.status, set(self.ended))


@dataclass
class Failures:
    """What can go wrong while a program runs; a finding's place in the list is its number, from 1."""

    findings: list[Finding] = field(default_factory=list[Finding])
    _numbers: dict[Any, int] = field(default_factory=dict[Any, int])

    def report(self, frame: Frame, failed: Any, finding: Finding) -> None:
        """Set the status of a frame if ``failed``, unless something failed before."""
        number = self._numbers.setdefault((finding.at, finding.what), len(self._numbers) + 1)
        if number > len(self.findings):
            self.findings.append(finding)
        first = jnp.logical_and(failed, frame.status == 0)
        frame.status = jnp.where(first, jnp.int32(number), jnp.int32(frame.status))
