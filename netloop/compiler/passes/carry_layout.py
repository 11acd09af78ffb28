"""Transpose narrow loop-carried states, so that their long axis is contiguous."""

from collections.abc import Iterator

import numpy as np

from netloop.compiler.passes.base import OFF, Pass
from netloop.compiler.passes.matmul_recognition import terms
from netloop.compiler.passes.rewriter import Rewriter, operand
from netloop.model.graph import ILayer, ITensor
from netloop.model.layers.loop import ILoopOutputLayer, IRecurrenceLayer
from netloop.model.layers.matrix import IEinsumLayer, IMatrixMultiplyLayer
from netloop.model.layers.pointwise import POINTWISE
from netloop.model.layers.reduce import IReduceLayer
from netloop.model.nest import LoopStep
from netloop.values.enums import LoopOutput, MatrixOperation
from netloop.values.types import HALVES

MAX_SHORT_AXIS, MIN_LONG_AXIS = 16, 32
"""The lengths of the last axis of a narrow state, and of the one before it. XLA makes vectors along the last axis."""

NONE, TRANSPOSE, VECTOR = MatrixOperation.NONE, MatrixOperation.TRANSPOSE, MatrixOperation.VECTOR
FLIPPED = {NONE: TRANSPOSE, TRANSPOSE: NONE, VECTOR: VECTOR}
COMBINING = IEinsumLayer, IMatrixMultiplyLayer, IReduceLayer
"""Layers that sum or reduce along an axis."""


class CarryLayout(Pass):
    """Swap the last two axes of narrow states, and of everything that is computed from them element by element."""

    name = "carry_layout"
    level = 2
    # an einsum whose result would be swapped stops this pass, unless it has become an element-wise product
    after = ("matmul_recognition",)
    rule = (
        f"A state whose last axis has at most {MAX_SHORT_AXIS} elements, and the one before it {MIN_LONG_AXIS} or "
        "more, is carried with the two swapped, and so is everything computed from it element by element. Applies if "
        "something is reduced, multiplied or broadcast along one of the two, and the state leaves an iteration only "
        "through reductions and products. Float32 and half precision only."
    )
    alternatives = (OFF,)

    def rewrite(self, rewriter: Rewriter) -> bool:
        states = [(step, recurrence.outputs[0]) for step in rewriter.loops() for recurrence in step.recurrences]
        swapped = [_swap(rewriter, step, state) for step, state in states]
        return any(swapped)


def _swap(rewriter: Rewriter, step: LoopStep, state: ITensor) -> bool:
    """Swap the axes of a state if that is possible and pays; a state that was swapped with another stays as it is."""
    if not _is_narrow(state):
        return False
    group = _Group(rewriter, step, state)
    if not group.may_swap():
        return False
    group.swap()
    rewriter.note(f"the last two axes of the state {state.name!r} are swapped")
    return True


def _is_narrow(state: ITensor) -> bool:
    type = state.type
    if not type.is_tensor or type.dtype not in (*HALVES, np.float32) or type.rank < 2:
        return False
    long, short = type.shape[-2:]
    # with a last axis of length 1, swapping moves no element
    return 1 < short <= MAX_SHORT_AXIS and long >= MIN_LONG_AXIS


def _is_wide(tensor: ITensor) -> bool:
    """Whether swapping the last two axes moves elements."""
    return tensor.type.rank >= 2 and 1 not in tensor.type.shape[-2:]


class _Group:
    """A state of a loop and the tensors whose last two axes must be swapped with it.

    Attributes:
        members: the tensors; all of them vary in the loop.
        layers: the live layers that write or read them.
    """

    def __init__(self, rewriter: Rewriter, step: LoopStep, state: ITensor) -> None:
        self.rewriter = rewriter
        self.loop = step.loop
        self.members = {state: None}
        self.layers: dict[ILayer, None] = {}
        # layers that passes have left without readers never run, and must not keep a state as it is
        live, queue = set(rewriter.scopes.live), [state]
        # the queue grows while it is walked, as each member may reach more
        for tensor in queue:
            for layer in (tensor.producer, *(reader for reader, _ in tensor.uses)):
                if layer in live and layer not in self.layers:
                    self.layers[layer] = None
                    fresh = [tensor for tensor in self._carried(layer) if tensor not in self.members]
                    self.members.update(dict.fromkeys(fresh))
                    queue += fresh

    def _carried(self, layer: ILayer) -> list[ITensor]:
        """Return the tensors of a layer that are swapped if one of them is."""
        tensors = [tensor for tensor in (*layer.inputs, *layer.outputs) if tensor is not None and self._carries(layer)]
        return [tensor for tensor in tensors if _is_wide(tensor) and self._varies(tensor)]

    def _carries(self, layer: ILayer) -> bool:
        """Whether a layer keeps the axes of its inputs."""
        if isinstance(layer, ILoopOutputLayer):
            # the last value of a loop inside this one; what leaves this one is swapped back
            return layer.kind is LoopOutput.LAST_VALUE and self._varies(layer.outputs[0])
        return isinstance(layer, (*POINTWISE, IRecurrenceLayer))

    def _varies(self, tensor: ITensor) -> bool:
        return self.rewriter.scopes.varies_in(tensor, self.loop) and tensor not in self.rewriter.weights

    def may_swap(self) -> bool:
        """Whether all layers can read and write swapped axes, and one of them gains by it."""
        return all(map(self._can_take, self.layers)) and any(map(self._gains, self.layers))

    def _can_take(self, layer: ILayer) -> bool:
        if self._carries(layer):
            return True
        if isinstance(layer, IMatrixMultiplyLayer):
            return self._can_multiply(layer)
        if layer.outputs[0] in self.members:
            # such as an iterator: with swapped copies of all its matrices a loop took 3.6 to 4.8 times as long
            return False
        if isinstance(layer, IEinsumLayer):
            return bool(terms(layer))
        if isinstance(layer, IReduceLayer):
            return len(layer.inputs) == 1 and layer.axes >> (operand(layer, 0).type.rank - 2) > 0
        return isinstance(layer, ILoopOutputLayer) and layer.kind is LoopOutput.LAST_VALUE

    def _can_multiply(self, layer: IMatrixMultiplyLayer) -> bool:
        """Whether a product reads members as matrices, or multiplies a column and a row into a member."""
        if layer.outputs[0] in self.members:
            # a column times a row, of which neither changes its order in memory by a swap
            return not any(_is_wide(tensor) or op is VECTOR for tensor, op in _operands(layer))
        return not any(tensor in self.members and op is VECTOR for tensor, op in _operands(layer))

    def _gains(self, layer: ILayer) -> bool:
        """Whether a layer sums or reduces, or broadcasts an input along one of the axes."""
        inputs = [tensor for tensor in layer.inputs if tensor is not None] if self._carries(layer) else []
        return isinstance(layer, COMBINING) or any(tensor.type.shape[-2:].count(1) == 1 for tensor in inputs)

    def swap(self) -> None:
        """Swap the axes of the members, and keep all other tensors as they are."""
        for layer in self.layers:
            if isinstance(layer, COMBINING) and not _is_wide(layer.outputs[0]):
                self._keep(layer.outputs[0])
        # everything that needs types comes first, as they only fit again when all layers are rewired
        edges = list(self._edges())
        swapped = [self._swapped(tensor) for _, _, tensor in edges]
        products = [
            (layer, self._swaps_operands(layer)) for layer in self.layers if isinstance(layer, IMatrixMultiplyLayer)
        ]
        equations = [(layer, self._equation(layer)) for layer in self.layers if isinstance(layer, IEinsumLayer)]
        reductions = [(layer, _swapped_axes(layer)) for layer in self.layers if isinstance(layer, IReduceLayer)]
        for (layer, position, _), tensor in zip(edges, swapped, strict=True):
            layer.set_input(position, tensor)
        for product, swaps in products:
            self._flip(product, swaps)
        for einsum, equation in equations:
            einsum.equation = equation
        for reduction, axes in reductions:
            reduction.axes = axes

    def _keep(self, output: ITensor) -> None:
        """Let the readers of a tensor see it in its present shape."""
        readers = list(output.uses)
        kept = self.rewriter.make.reshape(output, output.type.shape)
        for layer, position in readers:
            layer.set_input(position, kept)

    def _edges(self) -> Iterator[tuple[ILayer, int, ITensor]]:
        """The inputs at which swapped and unswapped tensors meet. Readers after the loop and dead layers count too."""
        for layer in filter(self._carries, self.layers):
            for position, tensor in enumerate(layer.inputs):
                if tensor is not None and tensor not in self.members:
                    yield layer, position, tensor
        for tensor in self.members:
            for layer, position in tensor.uses:
                if layer not in self.layers or not (self._carries(layer) or isinstance(layer, COMBINING)):
                    yield layer, position, tensor

    def _swapped(self, tensor: ITensor) -> ITensor:
        """Return a tensor with its last two axes swapped."""
        *batch, rows, columns = range(tensor.type.rank)
        if _is_wide(tensor):
            return self.rewriter.make.transpose(tensor, [*batch, columns, rows])
        shape = tensor.type.shape
        return self.rewriter.make.reshape(tensor, [*shape[:-2], shape[-1], shape[-2]])

    def _swaps_operands(self, layer: IMatrixMultiplyLayer) -> bool:
        """Whether a product's operands trade places, as a row times a matrix is faster than a matrix times a column."""
        return layer.outputs[0] in self.members or VECTOR in (layer.op0, layer.op1) or not _is_wide(layer.outputs[0])

    def _flip(self, layer: IMatrixMultiplyLayer, swaps: bool) -> None:
        """Let a product read its operands as they are now; its result stays the same, or has its axes swapped."""
        operands = _operands(layer)
        ops = [FLIPPED[op] if tensor in self.members else op for tensor, op in operands]
        if swaps:
            ops = [FLIPPED[op] for op in reversed(ops)]
            for position, (tensor, _) in enumerate(reversed(operands)):
                layer.set_input(position, tensor)
        layer.op0, layer.op1 = ops

    def _equation(self, layer: IEinsumLayer) -> str:
        """Return the equation of an einsum with the labels of the members swapped."""
        *labels, result = terms(layer)
        pairs = zip(labels, layer.inputs, strict=True)
        swapped = [own[:-2] + own[:-3:-1] if tensor in self.members else own for own, tensor in pairs]
        return ",".join(swapped) + "->" + result


def _operands(layer: IMatrixMultiplyLayer) -> list[tuple[ITensor, MatrixOperation]]:
    """Return the operands of a product, and how it reads each."""
    return [(operand(layer, 0), layer.op0), (operand(layer, 1), layer.op1)]


def _swapped_axes(layer: IReduceLayer) -> int:
    """Return the mask of the reduced axes with the last two swapped."""
    both = 3 << (operand(layer, 0).type.rank - 2)
    return layer.axes ^ both if layer.axes & both not in (0, both) else layer.axes
