"""The values and error flags that are known at a point of a program while it is traced."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from netloop.graph.tensor import ITensor
from netloop.layers.loop import ILoop
from netloop.lower.error_flags import first_error


@dataclass
class Frame:
    """The state of tracing at a point of a program.

    Attributes:
        values: the values of the tensors so far.
        error_flags: the error flag of each tensor whose value may be poisoned.
        trips: the number of the present iteration of each enclosing loop.
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

    def inside(self) -> Frame:
        """A frame for a branch or loop body: it sees all of this one and changes none of it."""
        # tracers of a branch or body must not leak into the frame around it
        own = dict(self.values), dict(self.error_flags), dict(self.trips)
        return Frame(*own, self.status, set(self.ended), self.is_iteration)

    def error_flag(self, tensors: Iterable[ITensor | None]) -> Any:
        """The first error among some tensors; None if none of them can be poisoned."""
        return first_error(*(self.error_flags[each] for each in tensors if each in self.error_flags))

    def poison(self, tensors: Iterable[ITensor], flag: Any) -> None:
        """Set the error flag of tensors to that of their inputs, unless it is None."""
        if flag is not None:
            self.error_flags.update(dict.fromkeys(tensors, flag))
