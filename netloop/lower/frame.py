"""What is known at a point of a program while it is traced."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp

from netloop.diagnostics import Finding
from netloop.graph.tensor import ITensor
from netloop.layers.loop import ILoop


@dataclass
class Frame:
    """What is known at a point of a program.

    A failure follows the data: it counts only if something needs the value that it poisoned.

    Attributes:
        values: the values of the tensors so far.
        faults: for each tensor whose value may be poisoned 0, or the number of the failure, counted from 1.
        trips: the number of the present trip in each loop around.
        status: 0 while all assertions hold, else the number of the first failure.
        ended: the loops around of which the trip is the one after the last.
        is_trip: whether this is part of a trip of all loops around, and not only asked what a coming trip would see;
            only in a trip assertions are made.
    """

    values: dict[ITensor, Any] = field(default_factory=dict[ITensor, Any])
    faults: dict[ITensor, Any] = field(default_factory=dict[ITensor, Any])
    trips: dict[ILoop, Any] = field(default_factory=dict[ILoop, Any])
    status: Any = 0
    ended: set[ILoop] = field(default_factory=set[ILoop])
    is_trip: bool = True

    def inside(self) -> Frame:
        """A frame for a branch or the body of a loop, which sees all of this one and changes none of it."""
        own = dict(self.values), dict(self.faults), dict(self.trips), self.status, set(self.ended), self.is_trip
        return Frame(*own)

    def fault(self, tensors: Iterable[ITensor | None]) -> Any:
        """The first fault of some tensors; None if none of them can have any."""
        return first(*(self.faults[each] for each in tensors if each in self.faults))

    def poison(self, tensors: Iterable[ITensor], fault: Any) -> None:
        """Note the fault, which may be None, of what some tensors were computed from."""
        if fault is not None:
            self.faults.update(dict.fromkeys(tensors, fault))


def first(*faults: Any) -> Any:
    """The first of some faults that is not 0; None if all are None."""
    found: Any = None
    for fault in faults:
        if found is None:
            found = fault
        elif fault is not None:
            found = jnp.where(found == 0, fault, found)
    return None if found is None else jnp.int32(found)


@dataclass
class Failures:
    """What can go wrong while a program runs; a finding's place in the list is its number, from 1."""

    findings: list[Finding] = field(default_factory=list[Finding])
    _numbers: dict[Any, int] = field(default_factory=dict[Any, int])

    def fault(self, failed: Any, finding: Finding) -> Any:
        """The number of a finding if ``failed``, else 0."""
        number = self._numbers.setdefault((finding.at, finding.what), len(self._numbers) + 1)
        if number > len(self.findings):
            self.findings.append(finding)
        return jnp.where(failed, jnp.int32(number), jnp.int32(0))
