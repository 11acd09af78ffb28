"""What goes through a loop from trip to trip, and what is left of it in the end."""

from __future__ import annotations

from typing import Any, NamedTuple


class Faults(NamedTuple):
    """What went wrong in a loop so far; None, which costs nothing, where nothing can.

    Attributes:
        trips: in what decides the number of trips.
        states: in the value of each recurrence.
        rows: in the elements of each stacked output.
        status: in assertions.
    """

    trips: Any
    states: Any
    rows: Any
    status: Any


class Carry(NamedTuple):
    """What a while loop carries from trip to trip.

    Attributes:
        trip: the number of the coming trip.
        states: the values of the recurrences.
        buffers: for every stacked output its elements so far, along axis 0.
        faults: what went wrong so far.
        goes_on: whether there is a coming trip; None where that is asked when it comes.
    """

    trip: Any
    states: list[Any]
    buffers: list[Any]
    faults: Faults
    goes_on: Any


class Done(NamedTuple):
    """A loop that has ended.

    Attributes:
        trips: the number of trips that it made.
        states: the values of the recurrences.
        rows: for every stacked output its elements, along axis 0.
        faults: what went wrong.
    """

    trips: Any
    states: list[Any]
    rows: list[Any]
    faults: Faults
