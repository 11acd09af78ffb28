"""States whose last axis is short are carried with the long one before it last, where vectors are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from netloop.enums import LoopOutput, MatrixOperation
from netloop.graph.layer import ILayer
from netloop.graph.tensor import ITensor
from netloop.layers.loop import ILoopOutputLayer, IRecurrenceLayer
from netloop.layers.matrix import IEinsumLayer, IMatrixMultiplyLayer
from netloop.layers.pointwise import POINTWISE
from netloop.layers.reduce import IReduceLayer
from netloop.nest import LoopStep
from netloop.passes.matmul_recognition import terms
from netloop.passes.rewriter import Rewriter, operand
from netloop.types import HALVES

MOST_SHORT, FEWEST_LONG = 16, 32
"""So short has a last axis to be, and so long the one before it."""

NONE, TRANSPOSE, VECTOR = MatrixOperation.NONE, MatrixOperation.TRANSPOSE, MatrixOperation.VECTOR
FLIPPED = {NONE: TRANSPOSE, TRANSPOSE: NONE, VECTOR: VECTOR}
COMBINING = IEinsumLayer, IMatrixMultiplyLayer, IReduceLayer
"""Layers that combine elements along an axis."""


def swap_axes(rewriter: Rewriter) -> None:
    """Swap the last two axes of states, and of all that is computed of them element by element."""
    for step in list(rewriter.loops()):
        for layer in step.recurrences:
            state = layer.outputs[0]
            group = _Group(rewriter, step, state) if _is_narrow(state) else None
            if group is not None and group.may_swap():
                group.swap()
                rewriter.note(f"the last two axes of the state {state.name!r} are swapped")


def _is_narrow(state: ITensor) -> bool:
    type = state.type
    if not type.is_tensor or type.dtype not in (*HALVES, np.float32) or type.rank < 2:
        return False
    long, short = type.shape[-2:]
    return 1 < short <= MOST_SHORT and long >= FEWEST_LONG


def _is_wide(tensor: ITensor) -> bool:
    """Whether swapping the last two axes moves something."""
    return tensor.type.rank >= 2 and 1 not in tensor.type.shape[-2:]


class _Group:
    """A state of a loop, and what has to have its last two axes swapped with it.

    Attributes:
        members: the tensors; all of them are made in the loop.
        layers: what makes and reads them, and is needed.
    """

    def __init__(self, rewriter: Rewriter, step: LoopStep, state: ITensor) -> None:
        self.rewriter = rewriter
        self.loop = step.loop
        self.members = {state: None}
        self.layers: dict[ILayer, None] = {}
        live, queue = set(rewriter.scopes.live), [state]
        for tensor in queue:
            for layer in (tensor.producer, *(reader for reader, _ in tensor.uses)):
                if layer in live and layer not in self.layers:
                    self.layers[layer] = None
                    fresh = [each for each in self._carried(layer) if each not in self.members]
                    self.members.update(dict.fromkeys(fresh))
                    queue += fresh

    def _carried(self, layer: ILayer) -> list[ITensor]:
        """The tensors of a layer that are swapped if one of them is."""
        tensors = [each for each in (*layer.inputs, *layer.outputs) if each is not None and self._carries(layer)]
        return [each for each in tensors if _is_wide(each) and self._varies(each)]

    def _carries(self, layer: ILayer) -> bool:
        """Whether the axes of a layer's outputs are those of its inputs."""
        if isinstance(layer, ILoopOutputLayer):
            return layer.kind is LoopOutput.LAST_VALUE and self._varies(layer.outputs[0])
        return isinstance(layer, (*POINTWISE, IRecurrenceLayer))

    def _varies(self, tensor: ITensor) -> bool:
        return self.loop in self.rewriter.scopes.of(tensor) and tensor not in self.rewriter.weights

    # ------------------------------------------------------------------ whether

    def may_swap(self) -> bool:
        """Whether all layers can do with swapped axes, and one gains by it."""
        return all(map(self._can_take, self.layers)) and any(map(self._gains, self.layers))

    def _can_take(self, layer: ILayer) -> bool:
        if self._carries(layer):
            return True
        if isinstance(layer, IMatrixMultiplyLayer):
            return self._can_multiply(layer)
        if layer.outputs[0] in self.members:
            return False
        if isinstance(layer, IEinsumLayer):
            return bool(terms(layer))
        if isinstance(layer, IReduceLayer):
            return len(layer.inputs) == 1 and layer.axes >> (operand(layer, 0).type.rank - 2) > 0
        return isinstance(layer, ILoopOutputLayer) and layer.kind is LoopOutput.LAST_VALUE

    def _can_multiply(self, layer: IMatrixMultiplyLayer) -> bool:
        """Whether a product reads members as matrices, or makes one of a column and a row."""
        if layer.outputs[0] in self.members:
            return not any(_is_wide(each) or op is VECTOR for each, op in _operands(layer))
        return not any(each in self.members and op is VECTOR for each, op in _operands(layer))

    def _gains(self, layer: ILayer) -> bool:
        """Whether a layer combines elements along one of the axes, or stretches something along one."""
        inputs = [each for each in layer.inputs if each is not None] if self._carries(layer) else []
        return isinstance(layer, COMBINING) or any(each.type.shape[-2:].count(1) == 1 for each in inputs)

    # ------------------------------------------------------------------ how

    def swap(self) -> None:
        """Swap the axes of the members, and let everything else be what it was."""
        for layer in self.layers:
            if isinstance(layer, COMBINING) and not _is_wide(layer.outputs[0]):
                self._keep(layer.outputs[0])
        # all that is asked of types comes first: they fit again when everything is done
        edges = list(self._edges())
        swapped = [self._swapped(tensor) for _, _, tensor in edges]
        products = [(each, self._turns(each)) for each in self.layers if isinstance(each, IMatrixMultiplyLayer)]
        equations = [(each, self._equation(each)) for each in self.layers if isinstance(each, IEinsumLayer)]
        reductions = [(each, _swapped_axes(each)) for each in self.layers if isinstance(each, IReduceLayer)]
        for (layer, position, _), tensor in zip(edges, swapped, strict=True):
            layer.set_input(position, tensor)
        for product, turns in products:
            self._flip(product, turns)
        for einsum, equation in equations:
            einsum.equation = equation
        for reduction, axes in reductions:
            reduction.axes = axes

    def _keep(self, output: ITensor) -> None:
        """Let what reads a tensor read it in the shape that it has now."""
        readers = list(output.uses)
        kept = self.rewriter.make.reshape(output, output.type.shape)
        for layer, position in readers:
            layer.set_input(position, kept)

    def _edges(self) -> Iterator[tuple[ILayer, int, ITensor]]:
        """Where what is swapped is made of what is not, or read by it: after the loop, or by what is not needed."""
        for layer in filter(self._carries, self.layers):
            for position, tensor in enumerate(layer.inputs):
                if tensor is not None and tensor not in self.members:
                    yield layer, position, tensor
        for tensor in self.members:
            for layer, position in tensor.uses:
                if layer not in self.layers or not (self._carries(layer) or isinstance(layer, COMBINING)):
                    yield layer, position, tensor

    def _swapped(self, tensor: ITensor) -> ITensor:
        """A tensor with its last two axes swapped."""
        *batch, rows, columns = range(tensor.type.rank)
        if _is_wide(tensor):
            return self.rewriter.make.transpose(tensor, [*batch, columns, rows])
        shape = tensor.type.shape
        return self.rewriter.make.reshape(tensor, [*shape[:-2], shape[-1], shape[-2]])

    def _turns(self, layer: IMatrixMultiplyLayer) -> bool:
        """Whether a product's operands change places, as a row times a matrix is faster than that times a column."""
        return layer.outputs[0] in self.members or VECTOR in (layer.op0, layer.op1) or not _is_wide(layer.outputs[0])

    def _flip(self, layer: IMatrixMultiplyLayer, turns: bool) -> None:
        """Let a product read its operands as they are now, and give what it gave, or that with its axes swapped."""
        operands = _operands(layer)
        ops = [FLIPPED[op] if each in self.members else op for each, op in operands]
        if turns:
            ops = [FLIPPED[op] for op in reversed(ops)]
            for position, (each, _) in enumerate(reversed(operands)):
                layer.set_input(position, each)
        layer.op0, layer.op1 = ops

    def _equation(self, layer: IEinsumLayer) -> str:
        """The equation of an einsum with the labels of the members swapped."""
        *labels, result = terms(layer)
        pairs = zip(labels, layer.inputs, strict=True)
        swapped = [own[:-2] + own[:-3:-1] if tensor in self.members else own for own, tensor in pairs]
        return ",".join(swapped) + "->" + result


def _operands(layer: IMatrixMultiplyLayer) -> list[tuple[ITensor, MatrixOperation]]:
    """What a product reads, and how."""
    return [(operand(layer, 0), layer.op0), (operand(layer, 1), layer.op1)]


def _swapped_axes(layer: IReduceLayer) -> int:
    """The axes that are reduced, with the last two swapped."""
    both = 3 << (operand(layer, 0).type.rank - 2)
    return layer.axes ^ both if layer.axes & both not in (0, both) else layer.axes
