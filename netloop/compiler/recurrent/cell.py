"""One iteration of a recurrent layer as data, of which kernels are made.

All tensors of an iteration are [rows, n * units], and each is seen as n *parts* [rows, units]: the gates of a cell. A
value is such a part. Values are numbered in running order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from netloop.compiler.machine_code.processor import FLOAT32
from netloop.values.types import Array

ITERATOR, COLUMN, STATE, PRODUCT = "iterator", "column", "state", "product"
NUMBER, ROW, WHOLE = "number", "row", "whole"
"""The kinds of values that are not computed element by element."""
SUM = "sum"
"""The kind of sums."""

WORK_OF_ELEMENT = 2
"""The multiplications in whose time a number is read from or written to memory."""


class CellValue(NamedTuple):
    """A part [rows, units] of a tensor of an iteration.

    Attributes:
        kind: the function that computes it element by element, or a kind of this module.
        of: the values that it is computed from. For a state and a product its number; for an iterator, for the only
            COLUMN of an iterator [rows, 1], and for what is the same in all iterations (NUMBER, a scalar; ROW,
            [n * units]; WHOLE, [rows, n * units]) the number of the array and that of the part.
        numbers: the parameters of the function.
    """

    kind: str
    of: tuple[int, ...]
    numbers: tuple[float, ...] = ()

    @property
    def is_computed(self) -> bool:
        """Whether it is computed element by element from other values."""
        return self.kind not in (ITERATOR, COLUMN, STATE, NUMBER, ROW, WHOLE, PRODUCT)


class ProductSource(NamedTuple):
    """The left operand of products with weights.

    Attributes:
        kind: ITERATOR, STATE or, for a value that is computed before, the empty string.
        number: the number of the iterator, the state or the value.
        depth: the length of its rows.
        products: the products that it contributes to, one for each part of its weights [depth, n * units].
    """

    kind: str
    number: int
    depth: int
    products: tuple[int, ...]


class Iterated(NamedTuple):
    """An array [count, rows, width] of which each iteration reads one element, in reverse order or not."""

    width: int
    is_reverse: bool


@dataclass(frozen=True)
class RecurrentCell:
    """One iteration.

    Attributes:
        rows, units: the shape of each value.
        values: the values.
        iterators: the arrays that are read along the iterations.
        invariants: the kind and the width of the arrays that are the same in all iterations.
        sources: the left operands of products, each with its own array of weights.
        states: the value of each state after the iteration.
        stacked: the values of which all iterations are kept, and whether in reverse order.
        ahead: the iterations whose products of iterators are computed together, so that their weights are read once.
        weight_type: the type of the weights.
    """

    rows: int
    units: int
    values: tuple[CellValue, ...]
    iterators: tuple[Iterated, ...]
    invariants: tuple[tuple[str, int], ...]
    sources: tuple[ProductSource, ...]
    states: tuple[int, ...]
    stacked: tuple[tuple[int, bool], ...]
    ahead: int = 1
    weight_type: np.dtype[Any] = FLOAT32

    @cached_property
    def phases(self) -> list[int]:
        """The phase of each value: the number of products, one after the other, behind which it is known.

        Threads wait for each other between phases, as a product reads all units of its left operand.
        """
        result: list[int] = []
        for value in self.values:
            if value.kind == PRODUCT:
                mine = [source for source in self.sources if value.of[0] in source.products]
                result.append(max(0 if source.kind else result[source.number] + 1 for source in mine))
            else:
                result.append(max((result[index] for index in value.of), default=0) if value.is_computed else 0)
        return result

    @property
    def number_of_phases(self) -> int:
        """The number of phases of an iteration."""
        return 1 + max(self.phases)

    @cached_property
    def kept(self) -> list[int]:
        """The values that are written to memory, as a later phase or a product reads them."""
        last, phases = self.number_of_phases - 1, self.phases
        readers = [(index, phases[reader]) for reader, value in enumerate(self.values) if value.is_computed
                   for index in value.of]  # fmt: skip
        readers += [(index, last) for index in self.states]
        later = {index for index, phase in readers if self.has_register(index) and phases[index] < phase}
        return sorted(later | {source.number for source in self.sources if not source.kind})

    def has_register(self, index: int) -> bool:
        """Whether a value is known only behind its phase: others are read wherever they are needed."""
        return self.values[index].is_computed or self.values[index].kind == PRODUCT

    def evaluate(self, functions: Any, count: int, arrays: Sequence[Array]) -> list[Array]:
        """The stacked values [count, rows, units], then the states [rows, units] after all iterations, by numpy.

        ``functions`` are those of numpy by the kinds of values; ``arrays`` the iterators, the invariants, the weights
        [depth, n, units] of each source, and the states [rows, units] before.
        """
        queue = iter(arrays)
        iterated = [np.asarray(next(queue)) for _ in self.iterators]
        invariants = [np.asarray(next(queue)) for _ in self.invariants]
        weights = [np.asarray(next(queue), np.float64) for _ in self.sources]
        states = [np.asarray(state, np.float32).reshape(self.rows, self.units) for state in queue]
        stacked = [np.zeros((count, self.rows, self.units), np.float32) for _ in self.stacked]
        for trip in range(count):
            now = [array[count - 1 - trip if each.is_reverse else trip] for array, each in
                   zip(iterated, self.iterators, strict=True)]  # fmt: skip
            values = self._iteration(functions, now, invariants, weights, states)
            for rows, (index, is_reverse) in zip(stacked, self.stacked, strict=True):
                rows[count - 1 - trip if is_reverse else trip] = values[index]
            states = [values[index] for index in self.states]
        return stacked + states

    def _iteration(
        self, functions: Any, now: list[Array], invariants: list[Array], weights: list[Array], states: list[Array]
    ) -> list[Array]:
        values: list[Array] = []
        for value in self.values:
            if value.is_computed:
                result = functions[value.kind](*(values[index] for index in value.of), *value.numbers)
            elif value.kind == PRODUCT:
                result = np.zeros((self.rows, self.units))
                for source, matrix in zip(self.sources, weights, strict=True):
                    if value.of[0] in source.products:
                        left = self._left(source, now, states, values)
                        result = result + left.astype(np.float64) @ matrix[:, source.products.index(value.of[0])]
            elif value.kind == STATE:
                result = states[value.of[0]]
            else:
                number, part = value.of
                own = value.kind in (ITERATOR, COLUMN)
                array = (now if own else invariants)[number]
                width = self.iterators[number].width if own else self.invariants[number][1]
                units = slice(part * self.units, (part + 1) * self.units)
                result = array.reshape(()) if value.kind == NUMBER else array.reshape(-1, width)[:, units]
            values.append(np.broadcast_to(np.asarray(result, np.float32), (self.rows, self.units)))
        return values

    def _left(self, source: ProductSource, now: list[Array], states: list[Array], values: list[Array]) -> Array:
        arrays = {ITERATOR: now, STATE: states, "": values}[source.kind]
        return arrays[source.number].reshape(self.rows, source.depth)

    def blocks(self, lanes: int) -> int:
        """The vectors of so many numbers that have all units."""
        return -(-self.units // lanes)

    def work(self) -> int:
        """The multiplications of an iteration; without products, as many as take its time in memory."""
        work = sum(source.depth * len(source.products) for source in self.sources)
        return self.rows * self.units * (work or WORK_OF_ELEMENT * (len(self.iterators) + len(self.stacked)))

    @cached_property
    def products_ahead(self) -> list[int]:
        """The products of which a part is computed ahead of their iteration."""
        of_iterators = [source.products for source in self.sources if source.kind == ITERATOR and self.ahead > 1]
        return sorted({product for products in of_iterators for product in products})

    def numbers_ahead(self, lanes: int) -> int:
        """The numbers that are kept of what is computed ahead, with vectors of so many numbers."""
        return self.blocks(lanes) * lanes * self.ahead * self.rows * len(self.products_ahead)

    def products_of(self, phase: int) -> list[int]:
        """The products of a phase."""
        return [value.of[0] for value, own in zip(self.values, self.phases, strict=True)
                if value.kind == PRODUCT and own == phase]  # fmt: skip


def joined_sums(values: Sequence[CellValue], roots: Iterable[int]) -> tuple[list[CellValue], dict[int, int]]:
    """Values in which products that are only added to each other are one, and the product that each became.

    A product that adds to the sums of another needs no registers of its own.
    """
    uses = [0] * len(values)
    for index in [*roots, *(index for value in values if value.is_computed for index in value.of)]:
        uses[index] += 1
    became: dict[int, int] = {}
    result = list(values)
    for root, value in enumerate(values):
        if value.kind != SUM:
            continue
        leaves = _leaves(values, uses, root)
        products = [leaf for leaf in leaves if values[leaf].kind == PRODUCT and uses[leaf] == 1]
        if len(products) > 1:
            # the last one, before which the left operands of all are known
            *others, last = sorted(products)
            became.update({values[leaf].of[0]: values[last].of[0] for leaf in others})
            result[root] = value._replace(of=(last, *(leaf for leaf in leaves if leaf not in products)))
    return result, became


def _leaves(values: Sequence[CellValue], uses: Sequence[int], root: int) -> list[int]:
    result: list[int] = []
    for index in values[root].of:
        is_inner = values[index].kind == SUM and uses[index] == 1
        result += _leaves(values, uses, index) if is_inner else [index]
    return result
