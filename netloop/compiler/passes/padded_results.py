"""Pad tensors whose length only a run knows, so that a pure function can have them."""

from collections.abc import Iterable

import numpy as np

from netloop.compiler.passes.buffer_layers import FilledPartLayer
from netloop.compiler.passes.growing_layers import Buffers
from netloop.compiler.passes.growth import Affine, IterationLengths, Unbuffered
from netloop.compiler.passes.open_slices import is_open, moved, sliced_axis
from netloop.compiler.passes.rewriter import Rewriter, operand
from netloop.compiler.passes.trip_counts import bound_of, counted_loop, not_padded
from netloop.model.formulas import FormulaBuilder
from netloop.model.graph import ILayer, ITensor, TypeTable
from netloop.model.layers.loop import ILoop, ILoopOutputLayer, IRecurrenceLayer
from netloop.model.layers.slice import ISliceLayer
from netloop.model.nest import LoopStep, Scopes
from netloop.values.diagnostics import NetworkError
from netloop.values.dims import Dims
from netloop.values.enums import SampleMode
from netloop.values.types import TensorType, normal_axis


class Results(IterationLengths):
    """The lengths of what depends on tensors with as many rows as a loop has iterations; these take its trip count.

    Args:
        rewriter: the copy of the network.
        loop: the loop.
        parts: the layers that cut the tensors from buffers.
        last: the largest trip count.
    """

    def __init__(self, rewriter: Rewriter, loop: ILoop, parts: list[FilledPartLayer], last: int) -> None:
        self.number = rewriter.trip_counts[loop]
        self.parts = {part.outputs[0]: part for part in parts}
        self._layers = _dependent(rewriter, self.parts)
        self._made = {tensor for layer in self._layers for tensor in layer.outputs}
        types, read = rewriter.network.types, [tensor for layer in self._layers for tensor in layer.inputs]
        outside = {tensor: types.of(tensor) for tensor in read if tensor and tensor not in self._made}
        self._outside = {tensor: kind for tensor, kind in outside.items() if isinstance(kind, TensorType)}
        super().__init__(last)
        self._require_constant_exits(rewriter.scopes)

    @property
    def layers(self) -> Iterable[ILayer]:
        return self._layers

    def table(self, trip: int) -> TypeTable:
        parts = {tensor: _cut_type(part, trip) for tensor, part in self.parts.items()}
        return TypeTable({**self._outside, **parts})

    def trip(self, make: FormulaBuilder) -> ITensor:
        return make.maximum(make.cast(make.scalar(self.number), np.int64), np.int64(0))

    def varies(self, tensor: ITensor, scopes: Scopes) -> bool:
        return self.has(tensor)

    def has(self, tensor: ITensor) -> bool:
        """Whether a tensor is one of the parts, or depends on one."""
        return tensor in self._made or tensor in self.parts

    def _require_constant_exits(self, scopes: Scopes) -> None:
        """Check that no length leaves a loop in which the trip count varies: its iterations have other ones."""
        for layer in self._layers:
            is_exit = isinstance(layer, IRecurrenceLayer | ILoopOutputLayer) and scopes.varies_in(
                self.number, layer.loop
            )
            if is_exit and any(line.slope for tensor in layer.inputs if tensor for line in self.lines(tensor)):
                raise Unbuffered(f"{layer.name!r} takes a length that changes from iteration to iteration")


def _cut_type(part: FilledPartLayer, trip: int) -> TensorType:
    buffer = operand(part, 0).type
    length = Affine(part.slope, part.start).at(trip)
    return buffer.with_shape(length if axis == part.axis else n for axis, n in enumerate(buffer.shape)).without_value()


def _dependent(rewriter: Rewriter, tensors: Iterable[ITensor]) -> list[ILayer]:
    """The layers that depend on some tensors, in running order."""
    layers, stack = set[ILayer](), [*tensors]
    while stack:
        for reader, _ in stack.pop().uses:
            if reader not in layers:
                layers.add(reader)
                stack += reader.outputs
    return [layer for step in rewriter.steps() for layer in step.layers if layer in layers]


def _cut_stacked_rows(rewriter: Rewriter) -> None:
    """Cut the rows that a loop with both limits has stacked, which a slice as long as its trip count takes."""
    for piece in rewriter.layers(ISliceLayer):
        rows = operand(piece, 0).producer
        if not is_open(piece) or not isinstance(rows, ILoopOutputLayer) or not rows.stacks:
            continue
        number, axis = moved(operand(piece, 2)), sliced_axis(piece)
        is_first = _starts(piece) == [0] and axis == normal_axis(rows.axis, operand(piece, 0).type.rank)
        if is_first and counted_loop(number) is rows.loop:
            number = rewriter.trip_counts.setdefault(rows.loop, number)
            cut = rewriter.network.add(FilledPartLayer(axis=axis, slope=1, start=0), [rows.outputs[0], number])
            rewriter.take_over(piece.outputs[0], cut.outputs[0])


def _starts(piece: ISliceLayer) -> list[int] | None:
    starts = piece.inputs[1]
    return [*Dims(piece.start)] if starts is None else starts.type.ints()


def pad_results(rewriter: Rewriter) -> bool:
    """Keep what has as many rows as a loop has iterations in buffers for the largest number of them.

    A padded output has zeros behind its elements; another output, with ``.shape`` behind its name, is the shape
    of these.

    Raises:
        NetworkError: a layer needs a tensor without padding (NL675).
    """
    notes, is_changed = rewriter.notes, False
    _cut_stacked_rows(rewriter)
    rewriter.read()
    # the last one first, so that the lengths behind it are fixed
    for loop in [step.loop for step in rewriter.loops()][::-1]:
        number = rewriter.trip_counts.get(loop)
        parts = [layer for layer in rewriter.layers(FilledPartLayer) if number and layer.inputs[1] is number]
        if not parts:
            continue
        step = next(step for step in rewriter.loops() if step.loop is loop)
        try:
            _pad(rewriter, step, parts)
        except Unbuffered as refusal:
            raise NetworkError(not_padded(loop, refusal)) from refusal
        notes = [*notes, f"what {loop.name!r} appends is padded to its bound"]
        is_changed = True
        rewriter.read()
    rewriter.notes = notes
    return is_changed


def _pad(rewriter: Rewriter, step: LoopStep, parts: list[FilledPartLayer]) -> None:
    most = bound_of(rewriter, step)
    results = Results(rewriter, step.loop, parts, most)
    buffers = Buffers(rewriter, results, most + results.ahead(results.parts), results.last)
    edits = [edit for layer in results.layers for edit in buffers.edits(layer)]
    outputs = [output for output in rewriter.network.outputs if results.has(output) and buffers.axes(output)]
    places = [rewriter.network.outputs.index(output) for output in outputs]
    for edit in edits:
        edit()
    for part in parts:
        _fill(buffers, part)
    for place in places:
        _mark(rewriter, buffers, rewriter.network.outputs[place], most)


def _fill(buffers: Buffers, part: FilledPartLayer) -> None:
    """Let the readers of a part read a buffer that has the first element of the part behind the last one.

    Derivatives of what is computed of padding are multiplied with 0, and are finite where those of the first one are.
    """
    make, whole, old = buffers.make, operand(part, 0), part.outputs[0]
    room, axis = buffers.room(buffers.lines(old)[part.axis]), [part.axis]
    assert isinstance(room, int)
    whole = make.slice(whole, [0], [room], axes=axis, outside=SampleMode.FILL)
    if room:
        first = make.slice(whole, [0], [1], axes=axis)
        whole = buffers.masked(buffers.like(whole, old), axis, first)
    buffers.replace(old, whole)


def _mark(rewriter: Rewriter, buffers: Buffers, output: ITensor, most: int) -> None:
    """Mark an output with zeros behind its elements, and their shape as another output."""
    make, lines, network, name = buffers.make, buffers.lines(output), rewriter.network, output.name
    axes = sorted(buffers.axes(output))
    padded = make.slice(
        buffers.masked(output, axes, 0), [0] * len(axes), [lines[axis].at(most) for axis in axes], axes=axes
    )
    rewriter.replace_output(output, padded)
    slopes, starts = (np.array(column, np.int64) for column in zip(*lines, strict=True))
    shape = make.add(make.mul(buffers.trip, slopes), starts)
    shape.name = f"{name}.shape"
    network.mark_output(shape)
