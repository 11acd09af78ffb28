"""The recognition of loops that are recurrent layers: one iteration as a cell, of which kernels are made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from netloop.compiler.passes.rewriter import Rewriter, operand
from netloop.compiler.recurrent.cell import (
    ITERATOR,
    NUMBER,
    PRODUCT,
    ROW,
    STATE,
    WHOLE,
    CellValue,
    Iterated,
    ProductSource,
    RecurrentCell,
    joined_sums,
)
from netloop.compiler.recurrent.machine_code import Processor
from netloop.model.graph import ILayer, ITensor
from netloop.model.layers.loop import IIteratorLayer
from netloop.model.layers.matrix import IMatrixMultiplyLayer
from netloop.model.layers.pointwise import (
    IActivationLayer,
    ICastLayer,
    IElementWiseLayer,
    IIdentityLayer,
    IUnaryLayer,
)
from netloop.model.layers.rearrange import IConcatenationLayer, IShuffleLayer, ISqueezeLayer, IUnsqueezeLayer
from netloop.model.layers.slice import ISliceLayer
from netloop.model.nest import LayerStep, LoopStep
from netloop.values.enums import (
    ActivationType,
    ElementWiseOperation,
    LoopOutput,
    MatrixOperation,
    SampleMode,
    TripLimit,
    UnaryOperation,
)
from netloop.values.types import normal_axis

LEAST_ROWS = 8
"""The rows from which on the weights of the input are read in each iteration; of fewer rows their products are computed
before the loop, as the weights would be read from memory more often than they are multiplied."""
MOST_PRODUCTS = 1 << 25
"""The most bytes of products before the loop."""

ELEMENTWISE = {
    ElementWiseOperation.SUM: "sum", ElementWiseOperation.SUB: "sub", ElementWiseOperation.PROD: "prod",
    ElementWiseOperation.DIV: "div", ElementWiseOperation.MAX: "max", ElementWiseOperation.MIN: "min",
}  # fmt: skip
UNARY = {UnaryOperation.NEG: "neg", UnaryOperation.ABS: "abs"}
PARAMETERS = {
    ActivationType.RELU: 0, ActivationType.SIGMOID: 0, ActivationType.TANH: 0, ActivationType.SOFTSIGN: 0,
    ActivationType.LEAKY_RELU: 1, ActivationType.THRESHOLDED_RELU: 1, ActivationType.CLIP: 2,
    ActivationType.HARD_SIGMOID: 2, ActivationType.SCALED_TANH: 2,
}  # fmt: skip
"""The activations that kernels have, and the number of their parameters."""

SAME = ICastLayer, IIdentityLayer, IShuffleLayer, ISqueezeLayer, IUnsqueezeLayer
"""Layers that keep the elements, if they keep the last axis."""

Parts = tuple[int, ...]
"""The values that are the parts of a tensor."""
Left = tuple[str, int]
"""The kind and the number of the left operand of a product."""


class Unfit(Exception):
    """A loop is no recurrent layer of which there are kernels."""


class _WeightProduct(NamedTuple):
    """A product of a source and weights.

    Attributes:
        left: its left operand.
        matrix: the weights.
        is_transposed: whether they are [n * units, depth] instead of [depth, n * units].
        products: the number of the product of each part.
    """

    left: Left
    matrix: ITensor
    is_transposed: bool
    products: tuple[int, ...]

    @property
    def depth(self) -> int:
        """The length of the rows of the left operand."""
        return self.matrix.type.shape[-1 if self.is_transposed else -2]


class _WeightPart(NamedTuple):
    """A part of the weights of a product."""

    product: _WeightProduct
    number: int


class Recognition:
    """A loop as a cell, and the layers that replace it.

    Attributes:
        count: the number of iterations.

    Raises:
        Unfit: it is no recurrent layer of which there are kernels.
    """

    def __init__(self, rewriter: Rewriter, step: LoopStep, processor: Processor) -> None:
        self.rewriter, self.step, self.processor = rewriter, step, processor
        self.count = self._trip_count()
        first = next(iter(step.states), None)
        _require(first is not None and first.type.is_tensor and first.type.rank > 0)
        assert first is not None
        self.units = first.type.shape[-1]
        _require(self.units > 0 and self.units % processor.lanes == 0)
        self.rows = first.type.volume // self.units
        _require(self.rows > 0)
        self.values: list[CellValue] = []
        self.products: list[_WeightProduct] = []
        self.iterators: list[tuple[ITensor, int, bool]] = []
        self.before: dict[int, list[_WeightProduct]] = defaultdict(list)
        self.invariants: list[tuple[ITensor, str]] = []
        self.parts: dict[ITensor, Parts] = {}
        for number, state in enumerate(step.states):
            _require(self._parts_in(state) == 1)
            self.parts[state] = (self._value(STATE, number),)
        for inner in step.body.steps:
            assert isinstance(inner, LayerStep)
            if not isinstance(inner.layer, IIteratorLayer):
                self.parts[inner.layer.outputs[0]] = self._computed(inner.layer)
        self.after = [self._single(tensor) for tensor in step.next_states]
        self.stacked = self._outputs()

    def _trip_count(self) -> int:
        count = self.step.loop.limit(TripLimit.COUNT)
        _require(count is not None and self.step.loop.limit(TripLimit.WHILE) is None)
        assert count is not None
        numbers = count.tensor(0).type.ints()
        _require(numbers is not None and numbers[0] > 0)
        assert numbers is not None
        return numbers[0]

    # ------------------------------------------------------------------ values

    def _value(self, kind: str, *of: int, numbers: Sequence[float] = ()) -> int:
        self.values.append(CellValue(kind, of, tuple(numbers)))
        return len(self.values) - 1

    def _parts_in(self, tensor: ITensor) -> int:
        """The number of parts of a tensor of the loop."""
        type = tensor.type
        _require(type.is_tensor and type.dtype == np.float32 and type.rank > 0)
        count, rest = divmod(type.shape[-1], self.units)
        _require(rest == 0 and count > 0 and type.volume == self.rows * type.shape[-1])
        return count

    def _single(self, tensor: ITensor) -> int:
        (part, *others) = self._parts(tensor)
        _require(not others and self._parts_in(tensor) == 1)
        return part

    def _parts(self, tensor: ITensor) -> Parts:
        if tensor not in self.parts:
            layer = tensor.producer
            if isinstance(layer, IIteratorLayer) and layer.loop is self.step.loop:
                self.parts[tensor] = self._of_iterator(layer)
            else:
                _require(not self.rewriter.scopes.varies_in(tensor, self.step.loop))
                self.parts[tensor] = self._of_invariant(tensor)
        return self.parts[tensor]

    def _of_invariant(self, tensor: ITensor) -> Parts:
        type = tensor.type
        _require(type.is_tensor and type.dtype == np.float32)
        number = len(self.invariants)
        if type.volume == 1:
            self.invariants.append((tensor, NUMBER))
            return (self._value(NUMBER, number, 0),)
        count, rest = divmod(type.shape[-1], self.units)
        _require(rest == 0 and type.volume in (type.shape[-1], self.rows * type.shape[-1]))
        kind = ROW if type.volume == type.shape[-1] else WHOLE
        self.invariants.append((tensor, kind))
        return tuple(self._value(kind, number, part) for part in range(count))

    def _of_iterator(self, layer: IIteratorLayer) -> Parts:
        count = self._parts_in(layer.outputs[0])
        products = self._products_before(layer)
        if products is not None:
            return products
        number = self._iterated(operand(layer, 0), layer)
        return tuple(self._value(ITERATOR, number, part) for part in range(count))

    def _iterated(self, tensor: ITensor, layer: IIteratorLayer) -> int:
        """The number of an array that is read as an iterator reads its input."""
        axis = normal_axis(layer.axis, tensor.type.rank)
        _require(axis < tensor.type.rank - 1 and tensor.type.shape[axis] >= self.count)
        _require(tensor.type.dtype == np.float32)
        key = tensor, axis, layer.reverse
        if key not in self.iterators:
            self.iterators.append(key)
        return self.iterators.index(key)

    def _products_before(self, layer: IIteratorLayer) -> Parts | None:
        """The parts of a product that is computed before the loop only to be read by it, as one of the loop."""
        tensor = operand(layer, 0)
        rows = list[ITensor]()
        while isinstance(tensor.producer, IElementWiseLayer) and tensor.producer.op is ElementWiseOperation.SUM:
            sum_ = tensor.producer
            added = next((at for at in (0, 1) if operand(sum_, at) in self.rewriter.weights), None)
            if added is None or not self._is_only_use(tensor):
                return None
            rows.append(operand(sum_, added))
            tensor = operand(sum_, 1 - added)
        product = tensor.producer
        if self.rows < LEAST_ROWS or not isinstance(product, IMatrixMultiplyLayer) or not self._is_only_use(tensor):
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

    def _is_only_use(self, tensor: ITensor) -> bool:
        return len(tensor.uses) == 1 and self.rewriter.may_replace(tensor)

    # ------------------------------------------------------------------ layers

    def _computed(self, layer: ILayer) -> Parts:
        """The parts of the output of a layer of the loop."""
        (output,) = layer.outputs
        count = self._parts_in(output)
        parts = self._of_layer(layer)
        # numbers stay one part wherever they are broadcast to
        _require(len(parts) == count)
        return parts

    def _of_layer(self, layer: ILayer) -> Parts:
        match layer:
            case IMatrixMultiplyLayer():
                return self._of_product(layer)
            case IElementWiseLayer():
                _require(layer.op in ELEMENTWISE)
                return self._elementwise(ELEMENTWISE[layer.op], [self._parts(operand(layer, at)) for at in (0, 1)])
            case IActivationLayer():
                _require(layer.type in PARAMETERS)
                numbers = (layer.alpha, layer.beta)[: PARAMETERS[layer.type]]
                return self._elementwise(layer.type.name.lower(), [self._parts(operand(layer, 0))], numbers)
            case IUnaryLayer():
                _require(layer.op in UNARY)
                return self._elementwise(UNARY[layer.op], [self._parts(operand(layer, 0))])
            case IConcatenationLayer():
                _require(normal_axis(layer.axis, layer.outputs[0].type.rank) == layer.outputs[0].type.rank - 1)
                return tuple(part for tensor in layer.inputs if tensor for part in self._whole_parts(tensor))
            case ISliceLayer():
                return self._of_slice(layer)
            case _:
                _require(
                    isinstance(layer, SAME) and operand(layer, 0).type.shape[-1:] == layer.outputs[0].type.shape[-1:]
                )
                plain = not isinstance(layer, IShuffleLayer) or layer.first_transpose is layer.second_transpose is None
                _require(plain)
                return self._whole_parts(operand(layer, 0))

    def _whole_parts(self, tensor: ITensor) -> Parts:
        _require(self._parts_in(tensor) > 0)
        return self._parts(tensor)

    def _elementwise(self, kind: str, operands: Sequence[Parts], numbers: Sequence[float] = ()) -> Parts:
        count = max(map(len, operands))
        _require(all(len(parts) in (1, count) for parts in operands))
        for parts in operands:
            # one part is broadcast to several only if it is a number
            _require(len(parts) == count or self.values[parts[0]].kind == NUMBER)
        return tuple(
            self._value(kind, *(parts[part % len(parts)] for parts in operands), numbers=numbers)
            for part in range(count)
        )

    def _of_slice(self, layer: ISliceLayer) -> Parts:
        x, output = operand(layer, 0), layer.outputs[0]
        _require(all(tensor is None for tensor in layer.inputs[1:]) and layer.mode is SampleMode.STRICT_BOUNDS)
        last = x.type.rank - 1
        axes = range(x.type.rank) if layer.axes is None else [normal_axis(axis, x.type.rank) for axis in layer.axes]
        starts, strides = dict(zip(axes, layer.start, strict=True)), dict(zip(axes, layer.stride, strict=True))
        _require(x.type.shape[:-1] == output.type.shape[:-1] and strides.get(last, 1) == 1)
        # an axis that is taken whole may still be read in another order
        _require(all(strides.get(axis, 1) == 1 or x.type.shape[axis] == 1 for axis in range(last)))
        first, rest = divmod(starts.get(last, 0), self.units)
        _require(rest == 0)
        return self._whole_parts(x)[first : first + self._parts_in(output)]

    # ------------------------------------------------------------------ products

    def _is_matrix(self, tensor: ITensor) -> bool:
        shape = tensor.type.shape
        is_one = len(shape) >= 2 and tensor.type.volume == shape[-1] * shape[-2]
        return is_one and tensor in self.rewriter.weights and tensor.type.dtype == np.float32

    def _of_product(self, layer: IMatrixMultiplyLayer) -> Parts:
        left, matrix, is_transposed = operand(layer, 0), operand(layer, 1), layer.op1 is MatrixOperation.TRANSPOSE
        operations = layer.op0, layer.op1
        if layer.op1 is MatrixOperation.VECTOR:
            # a matrix times a column is the row times the transposed matrix
            left, matrix, is_transposed = matrix, left, layer.op0 is not MatrixOperation.TRANSPOSE
            operations = layer.op1, layer.op0
        _require(operations[0] is not MatrixOperation.TRANSPOSE and operations[1] is not MatrixOperation.VECTOR)
        _require(self._is_matrix(matrix) and left not in self.rewriter.weights)
        _require(left.type.volume == self.rows * left.type.shape[-1])
        producer = left.producer
        if isinstance(producer, IIteratorLayer) and producer.loop is self.step.loop:
            number = self._iterated(operand(producer, 0), producer)
            if self.rows < LEAST_ROWS:
                return self._before_the_loop(number, matrix, is_transposed)
            return self._multiplied((ITERATOR, number), matrix, is_transposed)
        _require(self.rewriter.scopes.varies_in(left, self.step.loop))
        value = self._single(left)
        kind, of, _ = self.values[value]
        return self._multiplied((STATE, of[0]) if kind == STATE else ("", value), matrix, is_transposed)

    def _multiplied(self, left: Left, matrix: ITensor, is_transposed: bool) -> Parts:
        first = sum(len(product.products) for product in self.products)
        count, rest = divmod(matrix.type.shape[-2 if is_transposed else -1], self.units)
        _require(rest == 0)
        product = _WeightProduct(left, matrix, is_transposed, tuple(range(first, first + count)))
        self.products.append(product)
        return tuple(self._value(PRODUCT, number) for number in product.products)

    def _before_the_loop(self, number: int, matrix: ITensor, is_transposed: bool) -> Parts:
        """The parts of a product of an iterator, which is computed for all iterations at once."""
        products = self.before[number]
        first = sum(len(product.products) for product in products)
        count, rest = divmod(matrix.type.shape[-2 if is_transposed else -1], self.units)
        _require(rest == 0 and self.count * self.rows * (first + count) * self.units * 4 <= MOST_PRODUCTS)
        products.append(_WeightProduct((ITERATOR, number), matrix, is_transposed, tuple(range(count))))
        # the arrays of these products follow those of the iterators, whose number is known at the end
        return tuple(self._value(ITERATOR, -1 - number, part) for part in range(first, first + count))

    # ------------------------------------------------------------------ results

    def _outputs(self) -> list[tuple[Parts, bool]]:
        """The parts of each stacked output, and whether its rows are in reverse order."""
        states, result = set(self.step.states), list[tuple[Parts, bool]]()
        for output in self.step.outputs:
            if output.stacks:
                types = self.rewriter.network.types
                _require(output.known_length(types) == self.count)
                result.append((self._whole_parts(output.tensor(0)), output.kind is LoopOutput.REVERSE))
            else:
                _require(output.tensor(0) in states)
        return result

    def cell(self) -> RecurrentCell:
        """One iteration of the loop.

        Raises:
            Unfit: the sums of a phase do not fit into the registers, or no product has a state.
        """
        stacked = list(dict.fromkeys((part, is_reverse) for parts, is_reverse in self.stacked for part in parts))
        roots = [*self.after, *(part for part, _ in stacked)]
        lefts = [product.left[1] for product in self.products if not product.left[0]]
        values, became = joined_sums(self.values, [*roots, *lefts], "sum")
        summed: dict[int, list[_WeightPart]] = defaultdict(list)
        for product in self.products:
            for part, number in enumerate(product.products):
                summed[became.get(number, number)].append(_WeightPart(product, part))
        needed, phases = self._needed(values, roots, summed), self._phases(values, summed)
        numbers = {index: place for place, index in enumerate(needed)}
        of_products = [values[index].of[0] for index in needed if values[index].kind == PRODUCT]
        groups: dict[tuple[Left, int], list[tuple[_WeightPart, int]]] = defaultdict(list)
        for index in needed:
            if values[index].kind == PRODUCT:
                for part in summed[values[index].of[0]]:
                    number = of_products.index(values[index].of[0])
                    groups[part.product.left, phases[index]].append((part, number))
        self.groups = list(groups.values())
        sources = [
            ProductSource(
                kind, number if kind else numbers[number], parts[0][0].product.depth, tuple(to for _, to in parts)
            )
            for ((kind, number), _), parts in groups.items()
        ]
        self.arrays = [*range(len(self.iterators)), *(-1 - number for number in self.before)]
        cell = RecurrentCell(
            self.rows, self.units,
            tuple(self._renumbered(values[index], numbers, of_products) for index in needed),
            tuple(Iterated(*self._width_and_order(number)) for number in self.arrays),
            tuple((kind, tensor.type.shape[-1] if tensor.type.rank else 1) for tensor, kind in self.invariants),
            tuple(sources), tuple(numbers[index] for index in self.after),
            tuple((numbers[part], is_reverse) for part, is_reverse in stacked),
        )  # fmt: skip
        _require(any(source.kind != ITERATOR for source in sources))
        most = max(len(cell.products_of(phase)) for phase in range(cell.number_of_phases))
        _require(most <= self.processor.registers)
        return cell

    def _width_and_order(self, number: int) -> tuple[int, bool]:
        tensor, _, is_reverse = self.iterators[number if number >= 0 else -1 - number]
        if number >= 0:
            return tensor.type.shape[-1], is_reverse
        return self.units * sum(len(product.products) for product in self.before[-1 - number]), is_reverse

    def _renumbered(self, value: CellValue, numbers: dict[int, int], of_products: list[int]) -> CellValue:
        if value.is_computed:
            return value._replace(of=tuple(numbers[index] for index in value.of))
        if value.kind == PRODUCT:
            return value._replace(of=(of_products.index(value.of[0]),))
        if value.kind == ITERATOR:
            return value._replace(of=(self.arrays.index(value.of[0]), value.of[1]))
        return value

    def _needed(
        self, values: Sequence[CellValue], roots: Sequence[int], summed: dict[int, list[_WeightPart]]
    ) -> list[int]:
        needed, queue = set(roots), list(roots)
        for index in queue:
            for other in self._read_by(values[index], summed):
                if other not in needed:
                    needed.add(other)
                    queue.append(other)
        return sorted(needed)

    def _read_by(self, value: CellValue, summed: dict[int, list[_WeightPart]]) -> Sequence[int]:
        """The values that a value is computed from."""
        if value.kind == PRODUCT:
            return [part.product.left[1] for part in summed[value.of[0]] if not part.product.left[0]]
        return value.of if value.is_computed else ()

    def _phases(self, values: Sequence[CellValue], summed: dict[int, list[_WeightPart]]) -> list[int]:
        phases: list[int] = []
        for value in values:
            least = 1 if value.kind == PRODUCT else 0
            phases.append(max((phases[index] + least for index in self._read_by(value, summed)), default=0))
        return phases

    def weights_of_states(self) -> int:
        """The elements of the weights by which states, and what is computed from them, are multiplied."""
        return sum(product.matrix.type.volume for product in self.products if product.left[0] != ITERATOR)

    # ------------------------------------------------------------------ layers of the network

    def inputs(self, cell: RecurrentCell) -> list[ITensor]:
        """The inputs of the layer that replaces the loop."""
        initial = [recurrence.tensor(0) for recurrence in self.step.recurrences]
        weights = [self._packed(parts) for parts in self.groups]
        arrays = [self._along(number) for number in self.arrays]
        return [*arrays, *(tensor for tensor, _ in self.invariants), *weights, *initial]

    def _along(self, number: int) -> ITensor:
        """An array [count, ..] of the elements that the iterations read."""
        make = self.rewriter.make
        tensor, axis, _ = self.iterators[number if number >= 0 else -1 - number]
        if axis:
            tensor = make.transpose(tensor, [axis, *(other for other in range(tensor.type.rank) if other != axis)])
        if number >= 0:
            return tensor
        products = self.before[-1 - number]
        matrix = make.concat([self._matrix(product) for product in products], 1)
        flat = make.reshape(tensor, [tensor.type.volume // tensor.type.shape[-1], tensor.type.shape[-1]])
        return make.reshape(make.matmul(flat, matrix), [tensor.type.shape[0], self.rows, matrix.type.shape[1]])

    def _matrix(self, product: _WeightProduct) -> ITensor:
        """The weights [depth, n * units] of a product."""
        make, matrix = self.rewriter.make, product.matrix
        flat = make.reshape(matrix, matrix.type.shape[-2:]) if matrix.type.rank > 2 else matrix
        return make.transpose(flat, [1, 0]) if product.is_transposed else flat

    def _packed(self, parts: Sequence[tuple[_WeightPart, int]]) -> ITensor:
        """The weights of a source as [blocks, depth, n, lanes]."""
        make, lanes = self.rewriter.make, self.processor.lanes
        matrices = [
            make.slice(self._matrix(part.product), [part.number * self.units], [self.units], axes=[1])
            for part, _ in parts
        ]
        matrix = make.concat(matrices, 1) if len(matrices) > 1 else matrices[0]
        blocks = make.reshape(matrix, [matrix.type.shape[0], len(parts), self.units // lanes, lanes])
        return make.transpose(blocks, [2, 0, 1, 3])

    def take_over(self, outputs: Sequence[ITensor], cell: RecurrentCell) -> None:
        """Let the outputs of the layer take the places of those of the loop."""
        make, stacked, states = self.rewriter.make, iter(self.stacked), self.step.states
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
            else:
                state = outputs[len(unique) + states.index(output.tensor(0))]
                result = make.reshape(state, tensor.type.shape)
            self.rewriter.take_over(tensor, result)


def _require(condition: bool) -> None:
    if not condition:
        raise Unfit
