"""The recognition of layers that are one iteration of a recurrent layer: a cell, of which kernels are made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from netloop.compiler import product_precision
from netloop.compiler.machine_code.processor import BFLOAT16, FLOAT32, MOST_THREADS, Processor
from netloop.compiler.passes.kernel_functions import function_of
from netloop.compiler.passes.matmul_partitioning import cores
from netloop.compiler.passes.rewriter import Rewriter, operand
from netloop.compiler.recurrent.cell import (
    COLUMN,
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
from netloop.model.graph import ILayer, ITensor
from netloop.model.layers.matrix import IMatrixMultiplyLayer
from netloop.model.layers.pointwise import (
    IActivationLayer,
    ICastLayer,
    IElementWiseLayer,
    IIdentityLayer,
    ISelectLayer,
    IUnaryLayer,
)
from netloop.model.layers.rearrange import IConcatenationLayer, Rearrangement
from netloop.model.layers.slice import ISliceLayer
from netloop.values.enums import MatrixOperation, SampleMode
from netloop.values.types import normal_axis

ROWS_AHEAD = 128
"""The rows of the input, of as many iterations as have them, that are multiplied ahead: its weights are read from
memory once for all of them. More products, 8 KiB for a row of an LSTM of 512, would leave the second-level cache."""

MOST_CACHED = 3 << 19
"""The most bytes of weights of a thread that are float32 where they may be rounded to bfloat16: a second-level cache of
2 MiB has them. To widen a vector takes two instructions: an LSTM of 256 and one row takes 1.1 times as long."""
MOST_ROUNDED_ROWS = 7
"""The most rows of which weights are rounded: with 8, products take the time, and an LSTM of 512 takes 1.1 times as
long."""

Parts = tuple[int, ...]
"""The values that are the parts of a tensor."""
Left = tuple[str, int]
"""The kind and the number of the left operand of a product."""


class Unfit(Exception):
    """Layers are no cell of which there are kernels."""


class Read(NamedTuple):
    """A tensor that iterations read.

    Attributes:
        tensor: the tensor.
        axis: the axis along which they read it; None if it is all that the only iteration reads.
        is_reverse: whether they do so from its end.
    """

    tensor: ITensor
    axis: int | None
    is_reverse: bool = False


class WeightProduct(NamedTuple):
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

    product: WeightProduct
    number: int


class Recognition(ABC):
    """Layers as the cell of a recurrent layer, of which kernels are made.

    Args:
        rewriter: the network.
        processor: the vectors of the processor.
        rows, units: the shape of the parts of tensors.
        count: the number of iterations.

    Raises:
        Unfit: there are no kernels of this shape.
    """

    def __init__(self, rewriter: Rewriter, processor: Processor, rows: int, units: int, count: int) -> None:
        self.rewriter, self.processor, self.rows, self.units, self.count = rewriter, processor, rows, units, count
        require(rows > 0 and units > 0)
        self.values: list[CellValue] = []
        self.products: list[WeightProduct] = []
        self.iterators: list[Read] = []
        self.before: dict[int, list[WeightProduct]] = defaultdict(list)
        self.invariants: list[tuple[ITensor, str]] = []
        self.parts: dict[ITensor, Parts] = {}
        self.initial: list[ITensor] = []
        self.after: list[int] = []
        self.stacked: list[tuple[Parts, bool]] = []
        # the elements of the weights that only outputs need
        self.late = 0

    @abstractmethod
    def _of_outside(self, tensor: ITensor) -> Parts:
        """The parts of a tensor that no layer of the cell computes."""

    @abstractmethod
    def _times(self, left: ITensor, matrix: ITensor, is_transposed: bool) -> Parts:
        """The parts of a product with weights, which are [n * units, depth] if they are transposed."""

    # ------------------------------------------------------------------ values

    def _value(self, kind: str, *of: int, numbers: Sequence[float] = ()) -> int:
        self.values.append(CellValue(kind, of, tuple(numbers)))
        return len(self.values) - 1

    def _parts_in(self, tensor: ITensor) -> int:
        """The number of parts of a tensor of the loop."""
        type = tensor.type
        # what is true is 1, and what is not 0
        require(type.is_tensor and (type.dtype == np.float32 or type.dtype == np.bool_) and type.rank > 0)
        count, rest = divmod(type.shape[-1], self.units)
        require(rest == 0 and count > 0 and type.volume == self.rows * type.shape[-1])
        return count

    def _single(self, tensor: ITensor) -> int:
        (part, *others) = self._parts(tensor)
        require(not others and self._parts_in(tensor) == 1)
        return part

    def _parts(self, tensor: ITensor) -> Parts:
        if tensor not in self.parts:
            self.parts[tensor] = self._of_outside(tensor)
        return self.parts[tensor]

    def _of_invariant(self, tensor: ITensor) -> Parts:
        type = tensor.type
        require(type.is_tensor and type.dtype == np.float32)
        number = len(self.invariants)
        if type.volume == 1:
            self.invariants.append((tensor, NUMBER))
            return (self._value(NUMBER, number, 0),)
        count, rest = divmod(type.shape[-1], self.units)
        require(rest == 0 and type.volume in (type.shape[-1], self.rows * type.shape[-1]))
        kind = ROW if type.volume == type.shape[-1] else WHOLE
        self.invariants.append((tensor, kind))
        return tuple(self._value(kind, number, part) for part in range(count))

    # ------------------------------------------------------------------ layers

    def _computed(self, layer: ILayer) -> Parts:
        """The parts of the output of a layer of the loop."""
        (output,) = layer.outputs
        count = self._parts_in(output)
        parts = self._of_layer(layer)
        # numbers stay one part wherever they are broadcast to
        require(len(parts) == count)
        return parts

    def _of_layer(self, layer: ILayer) -> Parts:
        match layer:
            case IMatrixMultiplyLayer():
                return self._of_product(layer)
            case IElementWiseLayer() | IActivationLayer() | IUnaryLayer() | ISelectLayer():
                function = function_of(layer)
                if function is None:
                    raise Unfit
                operands = [self._parts(operand(layer, at)) for at in range(layer.num_inputs)]
                return self._elementwise(function.kind, operands, function.numbers)
            case IConcatenationLayer():
                require(normal_axis(layer.axis, layer.outputs[0].type.rank) == layer.outputs[0].type.rank - 1)
                return tuple(part for tensor in layer.inputs if tensor for part in self._whole_parts(tensor))
            case ISliceLayer():
                return self._of_slice(layer)
            case ICastLayer() | IIdentityLayer() | Rearrangement():
                require(not isinstance(layer, Rearrangement) or layer.keeps_elements)
                require(operand(layer, 0).type.shape[-1:] == layer.outputs[0].type.shape[-1:])
                # a mask may become numbers, and not numbers a mask
                require(layer.outputs[0].type.dtype in (np.float32, operand(layer, 0).type.dtype))
                return self._whole_parts(operand(layer, 0))
            case _:
                raise Unfit

    def _whole_parts(self, tensor: ITensor) -> Parts:
        require(self._parts_in(tensor) > 0)
        return self._parts(tensor)

    def _elementwise(self, kind: str, operands: Sequence[Parts], numbers: Sequence[float] = ()) -> Parts:
        count = max(map(len, operands))
        require(all(len(parts) in (1, count) for parts in operands))
        for parts in operands:
            # one part is broadcast to several only if it is a number, or one in each row
            require(len(parts) == count or self.values[parts[0]].kind in (NUMBER, COLUMN))
        return tuple(
            self._value(kind, *(parts[part % len(parts)] for parts in operands), numbers=numbers)
            for part in range(count)
        )

    def _of_slice(self, layer: ISliceLayer) -> Parts:
        x, output = operand(layer, 0), layer.outputs[0]
        require(all(tensor is None for tensor in layer.inputs[1:]) and layer.mode is SampleMode.STRICT_BOUNDS)
        last = x.type.rank - 1
        axes = range(x.type.rank) if layer.axes is None else [normal_axis(axis, x.type.rank) for axis in layer.axes]
        starts, strides = dict(zip(axes, layer.start, strict=True)), dict(zip(axes, layer.stride, strict=True))
        require(x.type.shape[:-1] == output.type.shape[:-1] and strides.get(last, 1) == 1)
        # an axis that is taken whole may still be read in another order
        require(all(strides.get(axis, 1) == 1 or x.type.shape[axis] == 1 for axis in range(last)))
        first, rest = divmod(starts.get(last, 0), self.units)
        require(rest == 0)
        return self._whole_parts(x)[first : first + self._parts_in(output)]

    # ------------------------------------------------------------------ products

    def _is_matrix(self, tensor: ITensor) -> bool:
        shape = tensor.type.shape
        is_one = len(shape) >= 2 and tensor.type.volume == shape[-1] * shape[-2] > 0
        return is_one and tensor in self.rewriter.weights and tensor.type.dtype == np.float32

    def _of_product(self, layer: IMatrixMultiplyLayer) -> Parts:
        left, matrix, is_transposed = operand(layer, 0), operand(layer, 1), layer.op1 is MatrixOperation.TRANSPOSE
        operations = layer.op0, layer.op1
        if layer.op1 is MatrixOperation.VECTOR:
            # a matrix times a column is the row times the transposed matrix
            left, matrix, is_transposed = matrix, left, layer.op0 is not MatrixOperation.TRANSPOSE
            operations = layer.op1, layer.op0
        require(operations[0] is not MatrixOperation.TRANSPOSE and operations[1] is not MatrixOperation.VECTOR)
        require(self._is_matrix(matrix) and left not in self.rewriter.weights)
        require(left.type.volume == self.rows * left.type.shape[-1])
        return self._times(left, matrix, is_transposed)

    def _times_own(self, left: ITensor, matrix: ITensor, is_transposed: bool) -> Parts:
        """The parts of a product of a tensor of the cell."""
        value = self._single(left)
        kind, of, _ = self.values[value]
        return self._multiplied((STATE, of[0]) if kind == STATE else ("", value), matrix, is_transposed)

    def _multiplied(self, left: Left, matrix: ITensor, is_transposed: bool) -> Parts:
        first = sum(len(product.products) for product in self.products)
        count, rest = divmod(matrix.type.shape[-2 if is_transposed else -1], self.units)
        require(rest == 0)
        product = WeightProduct(left, matrix, is_transposed, tuple(range(first, first + count)))
        self.products.append(product)
        return tuple(self._value(PRODUCT, number) for number in product.products)

    # ------------------------------------------------------------------ the cell

    def cell(self) -> RecurrentCell:
        """One iteration.

        Raises:
            Unfit: the sums of a phase do not fit into the registers, or no product has a state.
        """
        stacked = list(dict.fromkeys((part, is_reverse) for parts, is_reverse in self.stacked for part in parts))
        roots = [*self.after, *(part for part, _ in stacked)]
        lefts = [product.left[1] for product in self.products if not product.left[0]]
        values, became = joined_sums(self.values, [*roots, *lefts])
        summed: dict[int, list[_WeightPart]] = defaultdict(list)
        for product in self.products:
            for part, number in enumerate(product.products):
                summed[became.get(number, number)].append(_WeightPart(product, part))
        needed, phases = self._needed(values, roots, summed), self._phases(values, summed)
        numbers = {index: place for place, index in enumerate(needed)}
        of_products = [values[index].of[0] for index in needed if values[index].kind == PRODUCT]
        groups: dict[tuple[Left, int, int], list[tuple[_WeightPart, int]]] = defaultdict(list)
        for index in needed:
            if values[index].kind == PRODUCT:
                times = Counter[Left]()
                for part in summed[values[index].of[0]]:
                    left, number = part.product.left, of_products.index(values[index].of[0])
                    # the weights of a source have one part for each of its products
                    groups[left, phases[index], times[left]].append((part, number))
                    times[left] += 1
        self.groups = list(groups.values())
        sources = [
            ProductSource(
                kind, number if kind else numbers[number], parts[0][0].product.depth, tuple(to for _, to in parts)
            )
            for ((kind, number), *_), parts in groups.items()
        ]
        self.arrays = [*range(len(self.iterators)), *(-1 - number for number in self.before)]
        cell = RecurrentCell(
            self.rows, self.units,
            tuple(self._renumbered(values[index], numbers, of_products) for index in needed),
            tuple(Iterated(*self._width_and_order(number)) for number in self.arrays),
            tuple((kind, tensor.type.shape[-1] if tensor.type.rank else 1) for tensor, kind in self.invariants),
            tuple(sources), tuple(numbers[index] for index in self.after),
            tuple((numbers[part], is_reverse) for part, is_reverse in stacked),
            self._ahead(sources), self._weight_type(sources),
        )  # fmt: skip
        most = max(len(cell.products_of(phase)) for phase in range(cell.number_of_phases))
        require(most <= self.processor.registers)
        self.late = self._weights_of(values, {*needed}.difference(self._needed(values, self.after, summed)), summed)
        return cell

    def _weights_of(
        self, values: Sequence[CellValue], indices: Iterable[int], summed: dict[int, list[_WeightPart]]
    ) -> int:
        """The elements of the weights of those of some values that are products."""
        numbers = [values[index].of[0] for index in indices if values[index].kind == PRODUCT]
        return sum(self.units * part.product.depth for number in numbers for part in summed[number])

    def _weight_type(self, sources: Sequence[ProductSource]) -> np.dtype[Any]:
        """The type of packed weights, which are rounded where operands may be, and reading them takes the time."""
        size = sum(source.depth * len(source.products) for source in sources) * self.units * FLOAT32.itemsize
        is_cached = size <= MOST_CACHED * min(cores(), MOST_THREADS)
        may_round = self.rewriter.product_type == product_precision.BFLOAT16
        return BFLOAT16 if may_round and not is_cached and self.rows <= MOST_ROUNDED_ROWS else FLOAT32

    def _ahead(self, sources: Sequence[ProductSource]) -> int:
        """The iterations whose products of iterators are computed together."""
        reads = any(source.kind == ITERATOR for source in sources)
        return min(self.count, -(-ROWS_AHEAD // self.rows)) if reads else 1

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
        if value.kind in (ITERATOR, COLUMN):
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

    def weights(self) -> int:
        """The elements of all weights."""
        return sum(map(self._elements, self.groups))

    def weights_of_states(self) -> int:
        """The elements of the weights by which states, and what is computed from them, are multiplied."""
        return sum(self._elements(parts) for parts in self.groups if parts[0][0].product.left[0] != ITERATOR)

    def _elements(self, parts: Sequence[tuple[_WeightPart, int]]) -> int:
        return len(parts) * self.units * parts[0][0].product.depth

    # ------------------------------------------------------------------ layers of the network

    def inputs(self, cell: RecurrentCell) -> list[ITensor]:
        """The inputs of the layer that takes the place of the cell."""
        weights = [self._packed(parts, cell.weight_type) for parts in self.groups]
        arrays = [self._along(number) for number in self.arrays]
        return [*arrays, *(tensor for tensor, _ in self.invariants), *weights, *self.initial]

    def _along(self, number: int) -> ITensor:
        """An array [count, ..] of the elements that the iterations read."""
        make = self.rewriter.make
        tensor, axis, _ = self.iterators[number if number >= 0 else -1 - number]
        if axis is None:
            return make.reshape(tensor, [1, self.rows, tensor.type.shape[-1]])
        if axis:
            tensor = make.transpose(tensor, [axis, *(other for other in range(tensor.type.rank) if other != axis)])
        if number >= 0:
            return tensor
        products = self.before[-1 - number]
        matrix = make.concat([self._matrix(product) for product in products], 1)
        flat = make.reshape(tensor, [tensor.type.volume // tensor.type.shape[-1], tensor.type.shape[-1]])
        return make.reshape(make.matmul(flat, matrix), [tensor.type.shape[0], self.rows, matrix.type.shape[1]])

    def _matrix(self, product: WeightProduct) -> ITensor:
        """The weights [depth, n * units] of a product."""
        make, matrix = self.rewriter.make, product.matrix
        flat = make.reshape(matrix, matrix.type.shape[-2:]) if matrix.type.rank > 2 else matrix
        return make.transpose(flat, [1, 0]) if product.is_transposed else flat

    def _packed(self, parts: Sequence[tuple[_WeightPart, int]], weight_type: np.dtype[Any]) -> ITensor:
        """The weights of a source in a type as [blocks, depth, n, lanes]."""
        make, lanes = self.rewriter.make, self.processor.lanes
        matrices = [
            make.slice(self._matrix(part.product), [part.number * self.units], [self.units], axes=[1])
            for part, _ in parts
        ]
        depth, blocks = matrices[0].type.shape[0], -(-self.units // lanes)
        if self.units % lanes:
            rest = make.constant(np.zeros((depth, blocks * lanes - self.units), np.float32))
            matrices = [tensor for matrix in matrices for tensor in (matrix, rest)]
        matrix = make.concat(matrices, 1) if len(matrices) > 1 else matrices[0]
        blocks = make.reshape(matrix, [depth, len(parts), blocks, lanes])
        return make.transpose(make.cast(blocks, weight_type), [2, 0, 1, 3])


def require(condition: bool) -> None:
    """Raise ``Unfit`` unless a condition holds."""
    if not condition:
        raise Unfit
