"""The values that are known at a point of a run on the host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from netloop.diagnostics import Finding
from netloop.graph.tensor import ITensor
from netloop.host.observer import TensorObserver
from netloop.layers.loop import ILoop


@dataclass(frozen=True)
class Poisoned:
    """Stands for a value that is invalid because something failed; it counts only if something needs the value."""

    finding: Finding


@dataclass
class HostFrame:
    """The state of a run at a point.

    Attributes:
        values: the values of the tensors so far, or ``Poisoned``.
        trips: the number of the present iteration of each enclosing loop.
        is_iteration: whether the steps belong to an iteration that is made, and do not only compute what a coming one
            would see.
        observer: reports observed tensors; None if there are none.
    """

    values: dict[ITensor, Any]
    trips: dict[ILoop, int] = field(default_factory=dict[ILoop, int])
    is_iteration: bool = True
    observer: TensorObserver | None = None

    def inside(self, values: Mapping[ITensor, Any]) -> HostFrame:
        """A frame within this one, with more values."""
        return HostFrame({**self.values, **values}, dict(self.trips), self.is_iteration, self.observer)

    def see(self, tensors: Iterable[ITensor]) -> None:
        """Report those of some tensors that are observed and have a value here."""
        if self.observer is None:
            return
        for tensor in (each for each in tensors if each in self.observer.tensors):
            if not isinstance(value := self.values.get(tensor), Poisoned | None):
                self.observer.see(tensor, value, self.trips)

    def poisoned(self, tensors: Iterable[ITensor | None]) -> Poisoned | None:
        """The first of some tensors that is poisoned."""
        found = (self.values.get(each) for each in tensors if each is not None)
        return next((each for each in found if isinstance(each, Poisoned)), None)
