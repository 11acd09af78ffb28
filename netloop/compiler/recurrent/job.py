"""A job: what the threads of one call share, and where its arrays are."""

from __future__ import annotations

from typing import Any

from netloop.compiler.machine_code.code import FLOAT_BYTES, FunctionCode
from netloop.compiler.machine_code.jobs import LINE
from netloop.compiler.machine_code.processor import MOST_THREADS
from netloop.compiler.recurrent.cell import RecurrentCell

DONE, TRIPS, THREADS, BEGUN = LINE, 2 * LINE, 2 * LINE + 8, 3 * LINE
"""The fields of a job: the blocks that are done, the iterations, the threads that share it, and the blocks of each of
these that have been begun. Behind them are the addresses of the arrays."""
ARRAYS = BEGUN + MOST_THREADS * LINE


class JobLayout:
    """The layout of the jobs of a cell.

    Attributes:
        cell: the cell.
        places: the place of the address of each array, by its name and number, in the order in which XLA gives them.
        part: the bytes of a value in all rows.
    """

    def __init__(self, cell: RecurrentCell) -> None:
        self.cell = cell
        self.part = cell.rows * cell.units * FLOAT_BYTES
        states = len(cell.states)
        counts = {
            "iterator": len(cell.iterators),
            "invariant": len(cell.invariants),
            "weights": len(cell.sources),
            "before": states,
            "stacked": len(cell.stacked),
            "state": states,
            "kept": 1,
            "ahead": 1,
        }
        keys = [(name, number) for name, count in counts.items() for number in range(count)]
        self.places = {key: ARRAYS + 8 * position for position, key in enumerate(keys)}

    @property
    def size(self) -> int:
        """The bytes of a job."""
        return ARRAYS + 8 * len(self.places)

    def array(self, code: FunctionCode, job: Any, name: str, number: int = 0) -> Any:
        """The address of an array."""
        return code.load(job, self.places[name, number])

    def element(self, code: FunctionCode, job: Any, trip: Any, number: int) -> Any:
        """The address of the element of an iterator that an iteration reads."""
        width, is_reverse = self.cell.iterators[number]
        offset = code.multiply(self._position(code, job, trip, is_reverse), self.cell.rows * width * FLOAT_BYTES)
        return code.add(self.array(code, job, "iterator", number), offset)

    def stacked(self, code: FunctionCode, job: Any, trip: Any, number: int) -> Any:
        """The address of the element of a stacked value that an iteration writes."""
        _, is_reverse = self.cell.stacked[number]
        offset = code.multiply(self._position(code, job, trip, is_reverse), self.part)
        return code.add(self.array(code, job, "stacked", number), offset)

    def _position(self, code: FunctionCode, job: Any, trip: Any, is_reverse: bool) -> Any:
        return code.subtract(code.subtract(code.load(job, TRIPS), 1), trip) if is_reverse else trip

    def state(self, code: FunctionCode, job: Any, trip: Any, number: int) -> Any:
        """The address of a state before an iteration; every other one is in the same place."""
        return code.add(self.array(code, job, "state", number), code.multiply(code.remainder(trip, 2), self.part))

    def ahead(self, code: FunctionCode, job: Any, trip: Any, block: Any, row: Any, size: int) -> Any:
        """The address of the vectors, in all ``size`` bytes, that are computed ahead for a row of a block."""
        slot = code.remainder(trip, self.cell.ahead)
        element = code.add(code.multiply(block, self.cell.ahead), slot)
        line = code.multiply(code.add(code.multiply(element, self.cell.rows), row), size)
        return code.add(self.array(code, job, "ahead"), line)

    def kept(self, code: FunctionCode, job: Any, value: int) -> Any:
        """The address of a value that is kept for a later phase."""
        return code.add(self.array(code, job, "kept"), self.cell.kept.index(value) * self.part)
