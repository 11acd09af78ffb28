"""Pieces with a layer whose number of results depends on data, and with what follows it.

The results have room for the most that there can be, and their number is one of the program. What follows is padded,
as in ``padding.py``, and the host cuts the outputs.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from netloop.compiler.host.compiled_pieces import Pieces, fits
from netloop.compiler.host.frame import HostFrame
from netloop.compiler.host.numpy_layers import MOST_BYTES
from netloop.compiler.host.padded_pieces import PaddedFrame, PaddedProgram, shorter
from netloop.compiler.host.padding import Padding, is_known
from netloop.compiler.host.routes import Run, reads_of
from netloop.compiler.lower.frame import Frame
from netloop.compiler.lower.lowering import LoweringOptions
from netloop.compiler.phases import Phase
from netloop.model.device_errors import completed
from netloop.model.graph import ILayer, ITensor, Operation, TypeTable
from netloop.model.nest import LayerStep, Scopes, Step
from netloop.values.tensor_values import integer
from netloop.values.types import Shape, TensorType

NO_LENGTHS = np.zeros(0, np.int32)
"""The lengths that such a program takes: all of them follow from the number of results."""


class BoundedPieces:
    """The pieces of a network that begin with layers of fixed shapes, of which the last has bounded results.

    Args:
        pieces: the other pieces.
        before: the types of all tensors as far as they are known before the network runs.
    """

    def __init__(self, pieces: Pieces, scopes: Scopes, before: TypeTable) -> None:
        self._pieces, self._scopes, self._before = pieces, scopes, before
        self._programs: dict[tuple[Step, ...], BoundedProgram] = {}

    @property
    def scratch_size(self) -> int:
        """The memory in bytes that the largest of them needs besides inputs and outputs."""
        return max((program.compiled.scratch_size for program in self._programs.values()), default=0)

    def find(self, steps: Sequence[Step], position: int, frame: HostFrame) -> Run | None:
        """A piece of first steps, if the one at ``position``, where no other piece goes on, has bounded results."""
        step, own = steps[position], tuple(steps[: position + 1])
        layer = step.layer if isinstance(step, LayerStep) else None
        if self._pieces.options.platform != "cpu" or not isinstance(layer, Operation) or frame.trips:
            return None
        # what follows the piece may be of another length, which is no reason to compile it again
        if own not in self._programs:
            rows = self._most_rows(layer, own, frame)
            if rows is None:
                return None
            self._programs[own] = self._program(layer, rows, steps, position, frame)
        program = self._programs[own]
        is_valid = frame.poisoned(program.reads) is None
        return Run(len(program.block.steps), program.run_on_host) if is_valid else None

    def _program(
        self, layer: Operation, rows: int, steps: Sequence[Step], position: int, frame: HostFrame
    ) -> "BoundedProgram":
        lines, reads = LengthLines(frame, layer, rows), frame.arguments_of(reads_of(steps))
        padding = Padding(reads, lines.longest, self._before, frame.known)
        for tensor in layer.outputs:
            padding.give(tensor, lines.longest[tensor])
        end = position + 1
        while end < len(steps) and self._takes(steps[end], frame, padding, lines):
            end += 1
        own = steps[:end]
        reads = frame.arguments_of(reads_of(own))
        outputs, phase = self._pieces.needed_later(own), self._pieces.phase
        return BoundedProgram(own, reads, outputs, padding, self._scopes, phase, self._pieces.options, layer, lines)

    def _most_rows(self, layer: Operation, steps: Sequence[Step], frame: HostFrame) -> int | None:
        """The most results of the last of some steps, if they cannot fail and read what is known before a run."""
        if not _are_layers(steps) or not self._are_known(reads_of(steps), frame):
            return None
        if not all(map(self._is_fixed, filter(None, layer.inputs))):
            return None
        return layer.most_rows(*(None if tensor is None else self._before[tensor] for tensor in layer.inputs))

    def _are_known(self, tensors: Iterable[ITensor], frame: HostFrame) -> bool:
        """Whether all values among those of some tensors are valid, and decide the same shapes in all runs."""
        values = [tensor for tensor in tensors if tensor in frame.values]
        decide = [tensor for tensor in values if tensor in frame.valued and tensor not in frame.known]
        is_settled = all(map(self._is_fixed, values)) and all(is_known(self._before, tensor) for tensor in decide)
        return frame.poisoned(values) is None and is_settled

    def _is_fixed(self, tensor: ITensor) -> bool:
        type_ = self._before.of(tensor)
        return isinstance(type_, TensorType) and type_.is_fixed

    def _takes(self, step: Step, frame: HostFrame, padding: Padding, lines: "LengthLines") -> bool:
        """Whether a step can be part of the piece: a product would take the time of the most results there can be."""
        has_products = any(layer.HAS_PRODUCTS for layer in step.layers)
        is_layer = _are_layers([step]) and fits(step, lines.longest)
        if has_products or not is_layer or not self._are_known(step.reads, frame):
            return False
        return all(map(lines.know, (*step.reads, *step.writes))) and padding.takes(step)


def _are_layers(steps: Iterable[Step]) -> bool:
    """Whether steps need no error flags, which such a program does not have: loops and conditionals may."""
    return all(isinstance(step, LayerStep) for step in steps)


class LengthLines:
    """The lengths of tensors as ``slope * n + start``, where n is the number of results of a layer.

    Args:
        frame: the values so far, from which the other types follow.
        layer: the layer, of whose first output the first axis has n elements.
        rows: the largest n.

    Attributes:
        longest: the types for the largest n.
    """

    def __init__(self, frame: HostFrame, layer: ILayer, rows: int) -> None:
        # few elements may be broadcast, and then the lengths are on no line
        numbers = dict.fromkeys(max(0, n) for n in (rows, rows - 1, rows // 2, 2, 1, 0) if n <= rows)
        self._tables = {n: _types_for(n, layer, frame) for n in numbers}
        self.longest = self._tables[rows]
        self._rows = rows

    def know(self, tensor: ITensor) -> bool:
        """Whether a tensor has a shape for each n, of small size, whose lengths are on lines."""
        types = {n: table.of(tensor) for n, table in self._tables.items()}
        shapes = {n: type_.shape for n, type_ in types.items() if isinstance(type_, TensorType) and type_.is_fixed}
        longest = self.longest.of(tensor)
        if len(shapes) < len(types) or len({*map(len, shapes.values())}) > 1 or not isinstance(longest, TensorType):
            return False
        is_straight = all(shape == self.shape(tensor, n) for n, shape in shapes.items())
        return is_straight and (longest.nbytes <= MOST_BYTES or len({*shapes.values()}) == 1)

    def line(self, tensor: ITensor, axis: int) -> tuple[int, int]:
        """The slope and the start of the length of an axis."""
        most = self.longest[tensor].shape[axis]
        slope = most - self._tables[self._rows - 1][tensor].shape[axis]
        return slope, most - slope * self._rows

    def shape(self, tensor: ITensor, n: int) -> Shape:
        """The shape of a tensor for a number of results."""
        lines = (self.line(tensor, axis) for axis in range(self.longest[tensor].rank))
        return tuple(slope * n + start for slope, start in lines)


def _types_for(n: int, layer: ILayer, frame: HostFrame) -> TypeTable:
    """The types of a run in which a layer has n results."""
    types = frame.type_table()
    first, *others = (types[tensor] for tensor in layer.outputs)
    for tensor, type_ in zip(layer.outputs, (first.with_shape((n, *first.shape[1:])), *others), strict=True):
        types.give(tensor, type_)
    return types


class BoundedFrame(PaddedFrame):
    """The state of tracing such a piece; ``count`` is the number of results, once there are any."""

    count: Any = None


class BoundedProgram(PaddedProgram):
    """Steps of which one has results of a number that depends on data, with room for the most.

    Args:
        layer: the layer with these results.
        lines: the lengths that follow from their number.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        reads: Sequence[ITensor],
        outputs: Sequence[ITensor],
        padding: Padding,
        scopes: Scopes,
        phase: Phase,
        options: LoweringOptions,
        layer: Operation,
        lines: LengthLines,
    ) -> None:
        super().__init__(steps, reads, outputs, padding, scopes, phase, options)
        self._layer, self._lines = layer, lines

    def _trace(self, arrays: Sequence[Any], lengths: Any) -> list[Any]:
        frame = BoundedFrame(dict(zip(self.reads, arrays, strict=True)))
        return [*self.run_in(frame).values, frame.count]

    def _compute(self, layer: ILayer, frame: Frame) -> None:
        if layer is not self._layer:
            super()._compute(layer, frame)
            return
        assert isinstance(frame, BoundedFrame)
        rows = self.types[layer.outputs[0]].shape[0]
        inputs = (self._operand(layer, position, frame) for position in range(len(layer.inputs)))
        outputs, frame.count = self._layer.lower_bounded(rows, *inputs)
        frame.values.update(zip(layer.outputs, outputs, strict=True))
        lines = {pair: self._lines.line(*pair) for pair in self.lengths}
        frame.lengths = {pair: slope * frame.count + start for pair, (slope, start) in lines.items()}

    def run_on_host(self, frame: HostFrame) -> None:
        """Add the outputs to a frame, as long as they are."""
        arrays = [frame.values[tensor] for tensor in self.reads]
        *values, count = completed(self.compiled(arrays, NO_LENGTHS))
        shapes = [self._lines.shape(tensor, integer(count)) for tensor in self.outputs]
        frame.values.update(zip(self.outputs, map(shorter, values, shapes), strict=True))
