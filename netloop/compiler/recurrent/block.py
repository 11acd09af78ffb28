"""Blocks of an iteration: as many units as a vector has numbers, or what is left of them, of all rows, in one phase.

The sums of a few rows and of all products of the phase stay in registers while the weights of the block are read from
front to back. Then everything else is computed row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from netloop.compiler.machine_code.code import FLOAT_BYTES
from netloop.compiler.machine_code.processor import BFLOAT16
from netloop.compiler.machine_code.vectors import FUNCTIONS, Vectors
from netloop.compiler.recurrent.cell import (
    COLUMN,
    ITERATOR,
    NUMBER,
    PRODUCT,
    ROW,
    STATE,
    CellValue,
    ProductSource,
)
from netloop.compiler.recurrent.job import TRIPS, JobLayout

STEPS = 4, 2, 1
"""The elements of a row that are multiplied between two jumps: as many of these as divide the row."""
MOST_ROWS = 8
"""The rows that are multiplied together: elements of more, 4 KiB apart, are not in a cache of 8 ways at a time."""
FEW_SUMS = 8
"""Up to as many sums are split in two, as an addition begins 4 cycles after the one that it needs."""

NO_SUMS: Mapping[int, Any] = MappingProxyType({})
"""There are no products."""

Sums = dict[tuple[int, int], Any]
"""The vector of each row of a group and product."""


class PhaseCode:
    """The code of a phase.

    Args:
        module: the module of LLVM that gets the code.
        job: the layout of jobs.
        number: the number of the phase.
        lanes: the numbers of a vector.
        registers: the vectors of sums that registers hold.

    Attributes:
        function: the function that computes a block, of a job, an iteration and the number of the block.
    """

    def __init__(self, module: Any, job: JobLayout, number: int, lanes: int, registers: int) -> None:
        self._module, self._job, self._cell, self._number, self._lanes = module, job, job.cell, number, lanes
        self._bytes = lanes * FLOAT_BYTES
        self._registers, self._products = registers, job.cell.products_of(number)
        self._ahead = [product for product in self._cell.products_ahead if product in self._products]
        self.function = self._block()

    def _code(self, name: str, count: int) -> Vectors:
        return Vectors(self._module, name, count, lanes=self._lanes)

    def _block(self) -> Any:
        code, ahead = self._code(f"phase{self._number}", 3), self._cell.ahead
        job, trip, block = code.arguments
        if self._ahead:
            with code.builder.if_then(code.equals(code.remainder(trip, ahead), 0)):
                count = code.least(code.subtract(code.load(job, TRIPS), trip), ahead)
                with code.counting(0, count) as later:
                    self._groups(code, self._group_ahead, (job, code.add(trip, later), block), self._ahead)
        self._groups(code, self._group, (job, trip, block), self._products)
        code.end()
        return code.function

    def _groups(self, code: Vectors, group: Any, at: Sequence[Any], products: Sequence[int]) -> None:
        """Call functions that compute groups of rows."""
        rows, most = self._cell.rows, max(1, min(MOST_ROWS, self._registers // max(1, len(products))))
        # groups of rows as equal as possible: of 16 rows 6, 5 and 5 instead of 6, 6 and 4
        groups = -(-rows // most)
        small, large = rows // groups, rows % groups
        first = 0
        for size, count in ((small + 1, large), (small, groups - large)):
            if count:
                function = group(size)
                with code.counting(first, first + count * size, size) as row:
                    code.call(function, *at, row)
                first += count * size

    def _group_ahead(self, size: int) -> Any:
        """The function that computes products of iterators for some rows of a block, ahead of their iteration."""
        code = self._code(f"phase{self._number}_ahead_rows{size}", 4)
        sums = {(place, product): code.constant(0.0) for place in range(size) for product in self._ahead}
        self._multiply_all(code, sums, lambda source: source.kind == ITERATOR)
        places = self._places_ahead(code, sums)
        for key, value in sums.items():
            code.store_vector(value, *places[key])
        code.end()
        return code.function

    def _places_ahead(self, code: Vectors, keys: Iterable[tuple[int, int]]) -> dict[tuple[int, int], tuple[Any, int]]:
        """The address and the offset of sums that are computed ahead, of rows of a group and products."""
        products = self._cell.products_ahead
        job, trip, block, row = code.arguments
        start = self._job.ahead(code, job, trip, block, row, len(products) * self._bytes)
        numbers = {(place, product): place * len(products) + products.index(product) for place, product in keys}
        return {key: (start, number * self._bytes) for key, number in numbers.items()}

    def _group(self, size: int) -> Any:
        """The function that computes some rows of a block: of a job, an iteration, the block and the first row."""
        code = self._code(f"phase{self._number}_rows{size}", 4)
        sums = {(place, product): code.constant(0.0) for place in range(size) for product in self._products}
        if self._ahead:
            keys = [key for key in sums if key[1] in self._ahead]
            sums.update({key: code.load_vector(*place) for key, place in self._places_ahead(code, keys).items()})
        self._multiply_all(code, sums, lambda source: source.kind != ITERATOR or not self._ahead)
        # through memory, as the code of one row would be long if it were written for each
        memory, width = code.memory(max(1, len(sums)) * self._bytes), len(self._products) * self._bytes
        for position, value in enumerate(sums.values()):
            code.store_vector(value, memory, position * self._bytes)
        with code.counting(0, size) as place:
            line = code.add(memory, code.multiply(place, width))
            own = {product: code.load_vector(line, at * self._bytes) for at, product in enumerate(self._products)}
            job, trip, block, first = code.arguments
            RowCode(self._job, code, (job, trip, block, code.add(first, place)), self._number, own).compute()
        code.end()
        return code.function

    def _multiply_all(self, code: Vectors, sums: Sums, is_own: Callable[[ProductSource], bool]) -> None:
        """Add the products of some sources of the phase to the sums."""
        for number, source in enumerate(self._cell.sources):
            if source.products[0] in self._products and is_own(source):
                self._multiply(code, number, source, sums)

    def _left(self, code: Vectors, source: ProductSource) -> Any:
        """The address of the rows of a source."""
        job, trip, _, _ = code.arguments
        if source.kind == ITERATOR:
            return self._job.element(code, job, trip, source.number)
        if source.kind == STATE:
            return self._job.state(code, job, trip, source.number)
        return self._job.kept(code, job, source.number)

    def _multiply(self, code: Vectors, number: int, source: ProductSource, sums: Sums) -> None:
        """Add the products of the rows of a group and the weights of a source to the sums."""
        job, _, block, row = code.arguments
        depth, parts = source.depth, source.products
        keys = [key for key in sums if key[1] in parts]
        size = self._lanes * self._cell.weight_type.itemsize
        line = len(parts) * size
        left = code.add(self._left(code, source), code.multiply(row, depth * FLOAT_BYTES))
        weights = code.add(self._job.array(code, job, "weights", number), code.multiply(block, depth * line))
        load = code.load_bfloat16 if self._cell.weight_type == BFLOAT16 else code.load_vector
        steps = next(steps for steps in STEPS if depth % steps == 0)
        halves = 2 if steps > 1 and len(keys) <= min(FEW_SUMS, self._registers // 2) else 1
        # the operands that are fewer stay in registers for a step, and the others are read one by one: with both kinds,
        # 12 sums of 3 rows and 4 products would need 19 of 16 registers
        order = sorted(keys, key=lambda key: key[1]) if len(keys) < len(parts) ** 2 else keys
        with code.repeating(depth, steps) as loop:
            phis = [{key: loop.variable(code.constant(0.0) if half else sums[key]) for key in keys}
                    for half in range(halves)]  # fmt: skip
            results = [dict(half) for half in phis]
            rows, panel = (
                code.add(address, code.multiply(loop.count, stride))
                for address, stride in ((left, FLOAT_BYTES), (weights, line))
            )
            for step in range(steps):
                result, factors, vectors = results[step % halves], dict[int, Any](), dict[int, Any]()
                for place, product in order:
                    if place not in factors:
                        factors[place] = code.load_repeated(rows, (place * depth + step) * FLOAT_BYTES)
                    if product not in vectors:
                        vectors[product] = load(panel, step * line + parts.index(product) * size)
                    result[place, product] = code.fma(factors[place], vectors[product], result[place, product])
            for half, result in zip(phis, results, strict=True):
                for key, phi in half.items():
                    loop.set_next(phi, result[key])
        for key in keys:
            sums[key] = code.sum(*(result[key] for result in results))


class RowCode:
    """The values of one row of a block in one phase.

    Args:
        job: the layout of jobs.
        code: the code of a function.
        at: the job, the iteration, the block and the row.
        phase: the phase.
        sums: the sum of each product of the phase.
        states: the states before the iteration; None if they are in memory.
    """

    def __init__(
        self,
        job: JobLayout,
        code: Vectors,
        at: Sequence[Any],
        phase: int = 0,
        sums: Mapping[int, Any] = NO_SUMS,
        states: Sequence[Any] | None = None,
    ) -> None:
        self._layout, self._cell, self._code, self._phase, self._sums = job, job.cell, code, phase, sums
        self._job, self._trip, block, self._row = at
        self._states = states
        self._column = code.multiply(block, code.lanes * FLOAT_BYTES)
        # the last block may have fewer units than a vector has numbers
        rest = code.subtract(self._cell.units, code.multiply(block, code.lanes))
        self._mask = code.first_lanes(rest) if self._cell.units % code.lanes else None
        self._values: dict[int, Any] = {}

    def compute(self) -> None:
        """Compute what the phase knows, and write what leaves it."""
        cell, layout, at = self._cell, self._layout, (self._code, self._job)
        ready = [phase == self._phase for phase in cell.phases]
        leaving = [(self._value(index), layout.kept(*at, index)) for index in cell.kept if ready[index]]
        leaving += [(self._value(index), layout.stacked(*at, self._trip, number))
                    for number, (index, _) in enumerate(cell.stacked) if ready[index]]  # fmt: skip
        # all phases read the states before
        after = [self._value(index) for index in cell.states] if self._phase == cell.number_of_phases - 1 else []
        self._store(leaving)
        self._store_states(self._code.add(self._trip, 1), after)

    def iterate(self) -> list[Any]:
        """Compute an iteration without products, write what is stacked, and return the states after it."""
        self._store([(self._value(index), self._layout.stacked(self._code, self._job, self._trip, number))
                     for number, (index, _) in enumerate(self._cell.stacked)])  # fmt: skip
        return [self._value(index) for index in self._cell.states]

    def states_before(self) -> list[Any]:
        """The states before an iteration, which are in memory."""
        return [self._state(number) for number in range(len(self._cell.states))]

    def store_states(self, values: Sequence[Any]) -> None:
        """Write the states before an iteration."""
        self._store_states(self._trip, values)

    def _store_states(self, trip: Any, values: Sequence[Any]) -> None:
        code, job = self._code, self._job
        self._store([(value, self._layout.state(code, job, trip, number)) for number, value in enumerate(values)])

    def _store(self, leaving: Sequence[tuple[Any, Any]]) -> None:
        """Write the units of the block into rows of arrays."""
        for value, array in leaving:
            self._code.store_vector(value, self._place(array, self._cell.units, 0), mask=self._mask)

    def _value(self, index: int) -> Any:
        """The vector of a value."""
        if index not in self._values:
            self._values[index] = self._computed(index, self._cell.values[index])
        return self._values[index]

    def _computed(self, index: int, value: CellValue) -> Any:
        code, layout, units = self._code, self._layout, self._cell.units
        if self._cell.has_register(index) and self._cell.phases[index] < self._phase:
            return self._loaded(layout.kept(code, self._job, index), units, 0)
        if value.is_computed:
            return FUNCTIONS[value.kind](code, *map(self._value, value.of), *value.numbers)
        if value.kind == PRODUCT:
            return self._sums[value.of[0]]
        if value.kind == STATE:
            return self._states[value.of[0]] if self._states is not None else self._state(value.of[0])
        return self._read(*value)

    def _read(self, kind: str, of: tuple[int, ...], _: object) -> Any:
        """A part of an array that the kernel reads."""
        code, layout, units, (number, part) = self._code, self._layout, self._cell.units, of
        if kind in (ITERATOR, COLUMN):
            element = layout.element(code, self._job, self._trip, number)
            if kind == COLUMN:
                return code.load_repeated(code.add(element, code.multiply(self._row, FLOAT_BYTES)))
            return self._loaded(element, self._cell.iterators[number].width, part)
        array = layout.array(code, self._job, "invariant", number)
        if kind == NUMBER:
            return code.load_repeated(array)
        if kind == ROW:
            return code.load_vector(code.add(array, self._column), part * units * FLOAT_BYTES, self._mask)
        return self._loaded(array, self._cell.invariants[number][1], part)

    def _state(self, number: int) -> Any:
        """A state before the iteration, which is in memory."""
        return self._loaded(self._layout.state(self._code, self._job, self._trip, number), self._cell.units, 0)

    def _loaded(self, array: Any, width: int, part: int) -> Any:
        """The units of the block in the row of an array."""
        return self._code.load_vector(self._place(array, width, part), mask=self._mask)

    def _place(self, array: Any, width: int, part: int) -> Any:
        """The address of the units of the block in the row of an array."""
        row = self._code.multiply(self._row, width * FLOAT_BYTES)
        column = self._code.add(self._column, part * self._cell.units * FLOAT_BYTES)
        return self._code.add(self._code.add(array, row), column)
