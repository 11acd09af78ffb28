"""The recognition of loops that are recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from netloop.compiler.machine_code.processor import Processor
from netloop.compiler.passes.counters import first_of_counter, start_of_counter
from netloop.compiler.passes.recurrent_cells import Parts, Read, Recognition, WeightProduct, require
from netloop.compiler.passes.rewriter import Rewriter, operand
from netloop.compiler.recurrent.cell import COLUMN, ITERATOR, STATE, RecurrentCell
from netloop.model.graph import ILayer, ITensor
from netloop.model.layers.loop import IIteratorLayer
from netloop.model.layers.matrix import IMatrixMultiplyLayer
from netloop.model.layers.pointwise import IElementWiseLayer
from netloop.model.layers.rearrange import Rearrangement
from netloop.model.nest import LayerStep, LoopStep
from netloop.values.enums import ElementWiseOperation, LoopOutput, MatrixOperation, TripLimit
from netloop.values.types import Array, normal_axis

LEAST_ROWS = 8
"""The rows from which on the weights of the input are read in each iteration; of fewer rows their products are computed
before the loop, as the weights would be read from memory more often than they are multiplied."""
MOST_PRODUCTS = 1 << 25
"""The most bytes of products before the loop."""

ORDERS = ElementWiseOperation.LESS, ElementWiseOperation.GREATER, ElementWiseOperation.EQUAL
"""The comparisons of counters."""


class LoopRecognition(Recognition):
    """A loop as a cell, and the layers that replace it.

    Args:
        rewriter: the network.
        step: the loop.
        processor: the vectors of the processor.
        takes_products: whether products before the loop may become part of it.

    Raises:
        Unfit: it is no recurrent layer of which there are kernels.
    """

    def __init__(self, rewriter: Rewriter, step: LoopStep, processor: Processor, takes_products: bool = True) -> None:
        self.step, self._takes_products = step, takes_products
        starts = {layer.outputs[0]: start_of_counter(step, layer) for layer in step.recurrences}
        self._starts = {state: start for state, start in starts.items() if start is not None}
        recurrences = [layer for layer in step.recurrences if layer.outputs[0] not in self._starts]
        self._states = [layer.outputs[0] for layer in recurrences]
        first = next(iter(self._states), None)
        require(first is not None and first.type.is_tensor and first.type.rank > 0)
        assert first is not None
        units = first.type.shape[-1]
        super().__init__(rewriter, processor, first.type.volume // max(1, units), units, self._trip_count())
        self.initial = [layer.tensor(0) for layer in recurrences]
        for number, state in enumerate(self._states):
            require(self._parts_in(state) == 1 and state.type.dtype == np.float32)
            self.parts[state] = (self._value(STATE, number),)
        for inner in step.body.steps:
            assert isinstance(inner, LayerStep)
            # layers of counters are looked at where masks need them
            if not isinstance(inner.layer, IIteratorLayer) and _has_floats(inner.layer):
                self.parts[inner.layer.outputs[0]] = self._computed(inner.layer)
        self.after = [self._single(layer.tensor(1)) for layer in recurrences]
        self.stacked = self._outputs()

    def _trip_count(self) -> int:
        count = self.step.loop.limit(TripLimit.COUNT)
        require(count is not None and self.step.loop.limit(TripLimit.WHILE) is None)
        assert count is not None
        numbers = count.tensor(0).type.ints()
        require(numbers is not None and numbers[0] > 0)
        assert numbers is not None
        return numbers[0]

    def _of_outside(self, tensor: ITensor) -> Parts:
        layer = tensor.producer
        if isinstance(layer, IIteratorLayer) and layer.loop is self.step.loop:
            return self._of_iterator(layer)
        if tensor.type.dtype == np.bool_:
            return self._mask(tensor)
        require(not self.rewriter.scopes.varies_in(tensor, self.step.loop))
        return self._of_invariant(tensor)

    def _mask(self, tensor: ITensor) -> Parts:
        """The part of a mask [rows, 1] that compares a counter with a number for each row."""
        shape = tensor.type.shape
        require(tensor.type.volume == self.rows and (shape[-1:] == (1,) or self.rows == 1))
        while isinstance(tensor.producer, Rearrangement):
            require(tensor.producer.keeps_elements)
            tensor = operand(tensor.producer, 0)
            require(tensor.type.volume == self.rows)
        layer = tensor.producer
        require(isinstance(layer, IElementWiseLayer) and layer.op in ORDERS)
        assert isinstance(layer, IElementWiseLayer)
        make, sides = self.rewriter.make, [self._compared(operand(layer, at)) for at in (0, 1)]
        holds = self.rewriter.network.add_elementwise(sides[0], sides[1], layer.op).outputs[0]
        require(holds.type.volume == self.count * self.rows)
        self.iterators.append(Read(make.reshape(make.cast(holds, np.float32), [self.count, self.rows, 1]), 0))
        return (self._value(COLUMN if self.units > 1 else ITERATOR, len(self.iterators) - 1, 0),)

    def _compared(self, tensor: ITensor) -> ITensor:
        """A counter in all iterations [count, 1], or integers that are the same in all of them [1, n]."""
        start, make = first_of_counter(self.step, tensor), self.rewriter.make
        if start is not None:
            return make.constant(self._counted(start, tensor)[:-1, None].astype(np.int64))
        require(tensor.type.is_tensor and tensor.type.is_index and tensor.type.volume in (1, self.rows))
        require(not self.rewriter.scopes.varies_in(tensor, self.step.loop))
        return make.reshape(make.cast(tensor, np.int64), [1, tensor.type.volume])

    def _counted(self, start: int, counter: ITensor) -> Array:
        """The values of a counter in all iterations, and after the last one."""
        # they may wrap around
        return (np.arange(self.count + 1) + start).astype(counter.type.dtype)

    def _times(self, left: ITensor, matrix: ITensor, is_transposed: bool) -> Parts:
        producer = left.producer
        if isinstance(producer, IIteratorLayer) and producer.loop is self.step.loop:
            number = self._iterated(operand(producer, 0), producer)
            if self.rows < LEAST_ROWS:
                return self._before_the_loop(number, matrix, is_transposed)
            return self._multiplied((ITERATOR, number), matrix, is_transposed)
        require(self.rewriter.scopes.varies_in(left, self.step.loop))
        return self._times_own(left, matrix, is_transposed)

    def _of_iterator(self, layer: IIteratorLayer) -> Parts:
        type = layer.outputs[0].type
        if type.is_tensor and type.shape[-1:] == (1,) and type.volume == self.rows and self.units > 1:
            return (self._value(COLUMN, self._iterated(operand(layer, 0), layer), 0),)
        count = self._parts_in(layer.outputs[0])
        products = self._products_before(layer)
        if products is not None:
            return products
        number = self._iterated(operand(layer, 0), layer)
        return tuple(self._value(ITERATOR, number, part) for part in range(count))

    def _iterated(self, tensor: ITensor, layer: IIteratorLayer) -> int:
        """The number of an array that is read as an iterator reads its input."""
        axis = normal_axis(layer.axis, tensor.type.rank)
        require(axis < tensor.type.rank - 1 and tensor.type.shape[axis] >= self.count)
        require(tensor.type.dtype == np.float32)
        key = Read(tensor, axis, layer.reverse)
        if key not in self.iterators:
            self.iterators.append(key)
        return self.iterators.index(key)

    def _products_before(self, layer: IIteratorLayer) -> Parts | None:
        """The parts of a product that is computed before the loop only to be read by it, as one of the loop."""
        tensor, rows = self._summed(layer)
        product = tensor.producer
        is_worth_it = self._takes_products and self.rows >= LEAST_ROWS
        if not is_worth_it or not isinstance(product, IMatrixMultiplyLayer) or not self._is_only_use(tensor):
            return None
        x, matrix = operand(product, 0), operand(product, 1)
        is_plain = product.op0 is MatrixOperation.NONE and product.op1 is not MatrixOperation.VECTOR
        if not is_plain or not self._is_matrix(matrix) or x.type.rank != operand(layer, 0).type.rank:
            return None
        if normal_axis(layer.axis, x.type.rank) > x.type.rank - 3 or x in self.rewriter.weights:
            return None
        parts = self._multiplied((ITERATOR, self._iterated(x, layer)), matrix, product.op1 is MatrixOperation.TRANSPOSE)
        for row in rows:
            parts = self._elementwise("sum", [parts, self._of_invariant(row)])
        return parts

    def _summed(self, layer: IIteratorLayer) -> tuple[ITensor, list[ITensor]]:
        """The tensor that an iterator reads, without weights that are added to all iterations alike; and these."""
        tensor, rows = operand(layer, 0), list[ITensor]()
        while isinstance(tensor.producer, IElementWiseLayer) and tensor.producer.op is ElementWiseOperation.SUM:
            sides = operand(tensor.producer, 0), operand(tensor.producer, 1)
            before, row = sorted(sides, key=self.rewriter.weights.__contains__)
            is_row = row in self.rewriter.weights and row.type.shape[layer.axis] == 1
            if not is_row or before.type.shape != tensor.type.shape or not self._is_only_use(tensor):
                break
            rows.append(row)
            tensor = before
        return tensor, rows

    def _is_only_use(self, tensor: ITensor) -> bool:
        return len(tensor.uses) == 1 and self.rewriter.may_replace(tensor)

    def _before_the_loop(self, number: int, matrix: ITensor, is_transposed: bool) -> Parts:
        """The parts of a product of an iterator, which is computed for all iterations at once."""
        products = self.before[number]
        first = sum(len(product.products) for product in products)
        count, rest = divmod(matrix.type.shape[-2 if is_transposed else -1], self.units)
        require(rest == 0 and self.count * self.rows * (first + count) * self.units * 4 <= MOST_PRODUCTS)
        products.append(WeightProduct((ITERATOR, number), matrix, is_transposed, tuple(range(count))))
        # the arrays of these products follow those of the iterators, whose number is known at the end
        return tuple(self._value(ITERATOR, -1 - number, part) for part in range(first, first + count))

    def _outputs(self) -> list[tuple[Parts, bool]]:
        """The parts of each stacked output, and whether its rows are in reverse order."""
        states, result = {*self._states, *self._starts}, list[tuple[Parts, bool]]()
        for output in self.step.outputs:
            if output.stacks:
                types = self.rewriter.network.types
                require(output.known_length(types) == self.count and output.outputs[0].type.dtype == np.float32)
                result.append((self._whole_parts(output.tensor(0)), output.kind is LoopOutput.REVERSE))
            else:
                require(output.tensor(0) in states)
        return result

    def take_over(self, outputs: Sequence[ITensor], cell: RecurrentCell) -> None:
        """Let the outputs of the layer take the places of those of the loop."""
        make, stacked = self.rewriter.make, iter(self.stacked)
        unique = list(dict.fromkeys((part, is_reverse) for parts, is_reverse in self.stacked for part in parts))
        for output in self.step.outputs:
            tensor = output.outputs[0]
            if output.stacks:
                parts, is_reverse = next(stacked)
                rows = [outputs[unique.index((part, is_reverse))] for part in parts]
                joined = make.concat(rows, 2) if len(rows) > 1 else rows[0]
                shape = output.tensor(0).type.shape
                result = make.reshape(joined, [self.count, *shape])
                axis = normal_axis(output.axis, len(shape) + 1)
                if axis:
                    order = [*range(1, axis + 1), 0, *range(axis + 1, len(shape) + 1)]
                    result = make.transpose(result, order)
            elif output.tensor(0) in self._starts:
                last = self._counted(self._starts[output.tensor(0)], tensor)[-1]
                result = make.constant(np.full(tensor.type.shape, last))
            else:
                state = outputs[len(unique) + self._states.index(output.tensor(0))]
                result = make.reshape(state, tensor.type.shape)
            self.rewriter.take_over(tensor, result)


def _has_floats(layer: ILayer) -> bool:
    """Whether a layer computes with numbers, and not with counters and masks only."""
    return any(tensor.type.is_tensor and tensor.type.dtype == np.float32 for tensor in layer.inputs if tensor)
