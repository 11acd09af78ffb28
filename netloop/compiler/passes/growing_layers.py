"""Layers that read tensors of which an axis grows in a loop, so that they read buffers instead.

The first elements of an axis of a buffer are those of the tensor in the iteration; the others are garbage. A layer that
reads an axis whole, such as a reduction, gets a mask, and one that asks for its length gets the number.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.compiler.passes.growth import Affine, Affines, IterationLengths, Unbuffered
from netloop.compiler.passes.rewriter import Rewriter, operand
from netloop.model.formulas.rearrange import Length
from netloop.model.graph import Axes, ILayer, ITensor, Operation, layer
from netloop.model.layers.conditional import IIfConditionalInputLayer, IIfConditionalOutputLayer
from netloop.model.layers.gather import IGatherLayer
from netloop.model.layers.loop import ILoopOutputLayer, IRecurrenceLayer
from netloop.model.layers.matrix import IMatrixMultiplyLayer
from netloop.model.layers.normalization import INormalizationLayer
from netloop.model.layers.rearrange import IConcatenationLayer, IShuffleLayer
from netloop.model.layers.reduce import ICumulativeLayer, IReduceLayer, ISoftMaxLayer, highest, lowest
from netloop.model.layers.slice import ISliceLayer
from netloop.model.layers.sources import IFillLayer, IShapeLayer
from netloop.model.layers.topk import ITopKLayer
from netloop.values.diagnostics import LayerError
from netloop.values.dims import Dims
from netloop.values.enums import GatherMode, LayerType, LoopOutput, MatrixOperation, SampleMode, TopKOperation
from netloop.values.enums import ReduceOperation as Reduce
from netloop.values.types import Array, TensorType, axes_of, normal_axis

Edit = Callable[[], None]


@layer(LayerType.INTERNAL, "Buffer Write")
class BufferWriteLayer(Operation):
    """A buffer (input 0) with rows (input 1) written from a position (input 2) on, a scalar.

    Attributes:
        axis: the axis of the buffer and of the rows along which they are written.
    """

    REQUIRED_INPUTS = MAX_INPUTS = 3

    axis: int = 0

    def infer(self, buffer: TensorType, rows: TensorType, position: TensorType) -> TensorType:
        return buffer.without_value()

    def evaluate(self, buffer: Array, rows: Array, position: Array) -> Array:
        result, length = buffer.copy(), rows.shape[self.axis]
        # XLA writes all rows, further ahead if they do not fit; there is no iteration that needs such a buffer
        first = max(0, min(int(position), buffer.shape[self.axis] - length))
        np.moveaxis(result, self.axis, 0)[first : first + length] = np.moveaxis(rows, self.axis, 0)
        return result

    def lower(self, buffer: Any, rows: Any, position: Any) -> Any:
        return lax.dynamic_update_slice_in_dim(jnp.asarray(buffer), rows, position, self.axis)


class Buffers:
    """The edits that make layers read and write buffers.

    Args:
        rewriter: the copy of the network.
        growth: the lengths of their tensors.
        room: the number that, multiplied with the slope of an axis, is its length in a buffer.
        stand_in: a number that stands for the room if only a run knows it.
    """

    def __init__(self, rewriter: Rewriter, growth: IterationLengths, room: Length, stand_in: int) -> None:
        self.make, self.growth = rewriter.make, growth
        self._rewriter, self._room, self._stand_in = rewriter, room, stand_in
        self._lines: dict[ITensor, Affines] = {}
        self._numbers: dict[Affine, ITensor] = {}
        self._masks: dict[Affine, ITensor] = {}
        self._trip: ITensor | None = None

    # ------------------------------------------------------------------ lengths

    def lines(self, tensor: ITensor) -> Affines:
        """The lengths of the axes of a tensor."""
        if tensor not in self._lines:
            self._lines[tensor] = self.growth.lines(tensor)
        return self._lines[tensor]

    def like(self, new: ITensor, old: ITensor) -> ITensor:
        """A new tensor, whose axes have the lengths of those of an old one."""
        self._lines[new] = self.lines(old)
        return new

    def axes(self, tensor: ITensor | None) -> Axes:
        """The axes of a tensor that grow."""
        lines = () if tensor is None else self.lines(tensor)
        return frozenset(axis for axis, line in enumerate(lines) if line.slope)

    @property
    def trip(self) -> ITensor:
        """The number of the iteration; int64, 0-D."""
        if self._trip is None:
            self._trip = self.growth.trip(self.make)
        return self._trip

    def number(self, line: Affine) -> ITensor:
        """A line in the iteration; int64, 0-D."""
        if line not in self._numbers:
            self._numbers[line] = number_at(self.make, line, self.trip)
        return self._numbers[line]

    def room(self, line: Affine) -> Length:
        """The length of an axis in a buffer."""
        if not line.slope:
            return line.start
        if isinstance(self._room, int):
            return self._room * line.slope
        return self.make.mul(self._room, np.int64(line.slope))

    def stand_in(self, kind: TensorType, lines: Affines) -> TensorType:
        """The type of a buffer, with a number that stands for the room if only a run knows it."""
        room = self._room if isinstance(self._room, int) else self._stand_in
        shape = tuple(room * line.slope if line.slope else line.start for line in lines)
        # without its value, unless that is the same in all iterations
        return kind if shape == kind.shape else kind.with_shape(shape)

    # ------------------------------------------------------------------ edits

    def masked(self, x: ITensor, axes: Iterable[int], value: Any) -> ITensor:
        """A buffer with a value instead of the garbage along some axes."""
        lines, result = self.lines(x), x
        value = value if isinstance(value, ITensor) else np.asarray(value, x.type.dtype)
        for axis in sorted(axes):
            line = lines[axis]
            if line not in self._masks:
                self._masks[line] = self.make.less(self.make.arange(self.room(line)), self.number(line))
            mask = self.make.along(self._masks[line], len(lines), axis)
            result = self.make.where(mask, result, value)
        return self.like(result, x)

    def mask(self, reader: ILayer, position: int, axes: Iterable[int], value: Any) -> Edit:
        """The edit that masks an input of a layer."""
        axes = tuple(axes)

        def edit() -> None:
            reader.set_input(position, self.masked(operand(reader, position), axes, value))

        return edit

    def replace(self, old: ITensor, new: ITensor) -> None:
        """Let all readers of a tensor read another one, of the same lengths."""
        self._rewriter.take_over(old, self.like(new, old))

    def edits(self, reader: ILayer) -> list[Edit]:
        """The edits of a layer.

        Raises:
            Unbuffered: it cannot read or make buffers.
        """
        edits = self._sizes(reader)
        if any(map(self.axes, (*reader.inputs, *reader.outputs))):
            rule = next((rule for kind, rule in RULES.items() if isinstance(reader, kind)), _other)
            edits += rule(self, reader)
        return edits

    def _sizes(self, reader: ILayer) -> list[Edit]:
        """The edits of the inputs that decide the shape of a layer: their values have to be known."""
        return [
            self._size(reader, position, tensor)
            for position, tensor in enumerate(reader.inputs)
            if position in reader.SHAPE_INPUTS and tensor and self.growth.varies(tensor, self._rewriter.scopes)
        ]

    def _size(self, reader: ILayer, position: int, tensor: ITensor) -> Edit:
        lines = self.growth.values(tensor)
        lengths = [line for line in lines or () if line is not None]
        if lines is None or len(lengths) < len(lines):
            raise Unbuffered(f"{reader.name!r} has a shape that does not follow from the number of the iteration")
        if any(line.slope for line in lengths) and not isinstance(reader, RESIZED):
            raise Unbuffered(f"{reader.name!r} takes a length that grows")
        kind = tensor.type

        def edit() -> None:
            values = self.make.list_tensor([self.room(line) for line in lengths])
            values = values if kind.rank else self.make.scalar(values)
            reader.set_input(position, self.make.cast(values, kind.dtype))

        return edit


def number_at(make: Any, line: Affine, trip: ITensor) -> ITensor:
    """A line in the iteration of a number; int64, 0-D."""
    grown = trip if line.slope == 1 else make.mul(trip, np.int64(line.slope))
    return make.add(grown, np.int64(line.start)) if line.start else grown


RESIZED = IShuffleLayer, IFillLayer, ISliceLayer
"""Layers that may take lengths that grow."""

# ---------------------------------------------------------------------------- rules


def _other(buffers: Buffers, reader: ILayer) -> list[Edit]:
    """A layer that reads and makes the first elements, perhaps with zeros behind those of its first input."""
    # random numbers are drawn for a shape
    if not isinstance(reader, Operation) or reader.draws:
        raise _whole(reader)
    if isinstance(reader, IFillLayer):
        return []
    kinds = [None if tensor is None else buffers.growth.types(tensor)[-1] for tensor in reader.inputs]
    axes = [buffers.axes(tensor) for tensor in reader.inputs]
    neutrals = reader.neutrals(kinds, axes)
    if neutrals is None or (reader.TAKES_LENGTHS and _asks_for_lengths(reader, kinds, axes)):
        raise _whole(reader)
    _check(buffers, reader)
    return [buffers.mask(reader, operand, own.axes, own.value) for operand, own in neutrals.items()]


def _asks_for_lengths(reader: Operation, kinds: Sequence[Any], axes: Sequence[Axes]) -> bool:
    """Whether the result depends on the lengths of what grows, and not only on what is behind its end."""
    if isinstance(reader, IReduceLayer):
        return bool(reader.neutrals(kinds, axes))
    if isinstance(reader, IGatherLayer):
        is_plain = reader.mode is GatherMode.DEFAULT and not reader.num_elementwise_dims
        return not is_plain or reader.axis % kinds[0].rank in axes[0]
    if isinstance(reader, IConcatenationLayer):
        return any(reader.axis % kinds[0].rank in own for own in axes)
    return not (isinstance(reader, IShuffleLayer) and reader.keeps_end(kinds, axes[0]))


def _whole(reader: ILayer) -> Unbuffered:
    return Unbuffered(f"{reader.name!r} reads what grows whole")


def _check(buffers: Buffers, reader: Operation) -> None:
    """Check that a layer makes buffers of buffers."""
    kinds = [
        None if tensor is None else buffers.stand_in(buffers.growth.types(tensor)[-1], buffers.lines(tensor))
        for tensor in reader.inputs
    ]
    try:
        result = reader.infer(*kinds)
    except LayerError as error:
        raise _whole(reader) from error
    for tensor, kind in zip(reader.outputs, result if isinstance(result, tuple) else (result,), strict=True):
        if kind.shape != buffers.stand_in(kind, buffers.lines(tensor)).shape:
            raise _whole(reader)


def _passed(buffers: Buffers, reader: ILayer) -> list[Edit]:
    """A layer whose output is one of its inputs."""
    if any(buffers.lines(tensor) != buffers.lines(reader.outputs[0]) for tensor in reader.inputs if tensor):
        raise _whole(reader)
    return []


def _loop_output(buffers: Buffers, reader: ILayer) -> list[Edit]:
    assert isinstance(reader, ILoopOutputLayer)
    if reader.kind is LoopOutput.LAST_VALUE:
        return _passed(buffers, reader)
    raise _whole(reader)


def _shape(buffers: Buffers, reader: ILayer) -> list[Edit]:
    """The lengths in the iteration, as numbers that only a run knows."""
    lines = buffers.lines(operand(reader, 0))

    def edit() -> None:
        make = buffers.make
        slopes, starts = (np.array(column, np.int64) for column in zip(*lines, strict=True))
        buffers.replace(reader.outputs[0], make.add(make.mul(buffers.trip, slopes), starts))

    return [edit]


def _reduced(buffers: Buffers, reader: ILayer) -> list[Edit]:
    assert isinstance(reader, IReduceLayer)
    kind = buffers.growth.types(operand(reader, 0))[-1]
    listed = reader.inputs[1] if len(reader.inputs) > 1 else None
    axes = axes_of(reader.axes, kind.rank) if listed is None else buffers.growth.types(listed)[-1].ints()
    along = None if axes is None else buffers.axes(reader.inputs[0]) & {axis % kind.rank for axis in axes}
    if along is None:
        raise _whole(reader)
    if reader.op is not Reduce.AVG or not along:
        neutral = {Reduce.PROD: 1, Reduce.MAX: lowest(kind.dtype), Reduce.MIN: highest(kind.dtype)}
        return [buffers.mask(reader, 0, along, neutral.get(reader.op, 0))] if along else []
    if not kind.is_float:
        raise Unbuffered(f"{reader.name!r} is a mean of integers")
    return [lambda: _average(buffers, reader, [axis % kind.rank for axis in axes or ()], along)]


def _average(buffers: Buffers, reader: IReduceLayer, axes: Sequence[int], along: Axes) -> None:
    """Replace a mean by a sum, divided by the number of elements."""
    make, x = buffers.make, operand(reader, 0)
    lines, dtype = buffers.lines(x), x.type.dtype
    # a sum of halves may be infinite where their mean is not
    wide = np.float64 if dtype == np.float64 else np.float32
    total = make.sum(make.cast(buffers.masked(x, along, 0), wide), axes, reader.keep_dims)
    number = make.product([buffers.number(lines[axis]) if axis in along else lines[axis].start for axis in axes])
    buffers.replace(reader.outputs[0], make.cast(make.div(total, make.cast(make.tensor(number), wide)), dtype))


def _softmax(buffers: Buffers, reader: ILayer) -> list[Edit]:
    assert isinstance(reader, ISoftMaxLayer)
    along = buffers.axes(reader.inputs[0]) & {*axes_of(reader.axes, len(buffers.lines(operand(reader, 0))))}
    return [buffers.mask(reader, 0, along, -np.inf)] if along else []


def _top(buffers: Buffers, reader: ILayer) -> list[Edit]:
    assert isinstance(reader, ITopKLayer)
    kind = buffers.growth.types(operand(reader, 0))[-1]
    along = buffers.axes(reader.inputs[0]) & {*axes_of(reader.axes, kind.rank)}
    if along and reader.total_order:
        raise _whole(reader)
    worst = lowest(kind.dtype) if reader.op is TopKOperation.MAX else highest(kind.dtype)
    # equal elements are in the order of their indices, so that those of the tensor precede
    return [buffers.mask(reader, 0, along, worst)] if along else []


def _cumulative(buffers: Buffers, reader: ILayer) -> list[Edit]:
    assert isinstance(reader, ICumulativeLayer)
    if reader.reverse:
        raise _whole(reader)
    return []


def _normalized(buffers: Buffers, reader: ILayer) -> list[Edit]:
    assert isinstance(reader, INormalizationLayer)
    lines = buffers.lines(operand(reader, 0))
    if reader.num_groups > 1 or buffers.axes(reader.inputs[0]) & {*axes_of(reader.axes, len(lines))}:
        raise _whole(reader)
    _check(buffers, reader)
    return []


def _product(buffers: Buffers, reader: ILayer) -> list[Edit]:
    assert isinstance(reader, IMatrixMultiplyLayer)
    edits: list[Edit] = []
    for position, operation in enumerate((reader.op0, reader.op1)):
        rank, tensor = len(buffers.lines(operand(reader, position))), reader.inputs[position]
        is_last = operation is MatrixOperation.VECTOR or (operation is MatrixOperation.NONE) == (position == 0)
        summed = buffers.axes(tensor) & {rank - 1 if is_last else rank - 2}
        # both, as the garbage of one may be infinite
        edits += [buffers.mask(reader, position, summed, 0)] if summed else []
    _check(buffers, reader)
    return edits


def _gathered(buffers: Buffers, reader: ILayer) -> list[Edit]:
    assert isinstance(reader, IGatherLayer)
    data, indices = operand(reader, 0), operand(reader, 1)
    axis = normal_axis(reader.axis, len(buffers.lines(data)))
    line = buffers.lines(data)[axis]
    if not line.slope or reader.mode is not GatherMode.DEFAULT or reader.num_elementwise_dims:
        return _other(buffers, reader)
    values = buffers.growth.values(indices)
    is_inside = values is not None and all(
        value and buffers.growth.is_below(Affine(0, -1), value) and buffers.growth.is_below(value, line)
        for value in values
    )
    return [] if is_inside else [lambda: _read_inside(buffers, reader, line)]


def _read_inside(buffers: Buffers, reader: IGatherLayer, line: Affine) -> None:
    """Let a gather read from the end of what grows, and nothing behind it."""
    make, indices = buffers.make, operand(reader, 1)
    length = make.cast(buffers.number(line), indices.type.dtype)
    places = make.where(make.less(indices, 0), make.add(indices, length), indices)
    is_outside = make.logical_or(make.less(places, 0), make.logical_not(make.less(places, length)))
    beyond = make.cast(make.tensor(buffers.room(line)), indices.type.dtype)
    result = make.where(is_outside, beyond, places)
    reader.set_input(1, buffers.like(result, indices))


def _joined(buffers: Buffers, reader: ILayer) -> list[Edit]:
    assert isinstance(reader, IConcatenationLayer)
    parts = [tensor for tensor in reader.inputs if tensor is not None]
    axis = normal_axis(reader.axis, len(buffers.lines(parts[0])))
    growing = [position for position, part in enumerate(parts) if axis in buffers.axes(part)]
    if not growing:
        return _other(buffers, reader)
    if len(growing) > 1:
        raise Unbuffered(f"{reader.name!r} joins tensors that grow")
    return [lambda: _append(buffers, reader, axis, growing[0])]


def _append(buffers: Buffers, reader: IConcatenationLayer, axis: int, position: int) -> None:
    """Write what is joined to a buffer behind it, and let what precedes it move it."""
    make, parts = buffers.make, [operand(reader, at) for at in range(len(reader.inputs))]
    line, result = buffers.lines(parts[position])[axis], parts[position]
    if position:
        ahead = sum(buffers.lines(part)[axis].start for part in parts[:position])
        line = Affine(line.slope, line.start + ahead)
        joined = make.concat([*parts[:position], result], axis)
        result = make.slice(joined, [0], [buffers.room(line)], axes=[axis])
    for part in parts[position + 1 :]:
        result = make.network.add(BufferWriteLayer(axis=axis), [result, part, buffers.number(line)]).outputs[0]
        line = Affine(line.slope, line.start + buffers.lines(part)[axis].start)
    buffers.replace(reader.outputs[0], result)


def _reshaped(buffers: Buffers, reader: ILayer) -> list[Edit]:
    """A reshape that keeps the outer axes of the one that grows: its first elements stay the first ones."""
    assert isinstance(reader, IShuffleLayer)
    if reader.reshape_dims is None and len(reader.inputs) < 2:
        return _other(buffers, reader)
    before, after = buffers.lines(operand(reader, 0)), buffers.lines(reader.outputs[0])
    if reader.first_transpose is not None:
        before = tuple(before[axis] for axis in reader.first_transpose)
    if reader.second_transpose is not None:
        order = tuple(reader.second_transpose)
        after = tuple(after[order.index(axis)] for axis in range(len(order)))
    if _outer(before) is None or _outer(before) != _outer(after):
        raise Unbuffered(f"{reader.name!r} moves what grows to other rows")
    return []


def _outer(lines: Affines) -> int | None:
    """The number of elements of the axes before the only one that grows; None if there are several."""
    growing = [axis for axis, line in enumerate(lines) if line.slope]
    return int(np.prod([line.start for line in lines[: growing[0]]])) if len(growing) == 1 else None


def _sliced(buffers: Buffers, reader: ILayer) -> list[Edit]:
    assert isinstance(reader, ISliceLayer)
    lines = buffers.lines(operand(reader, 0))
    listed = reader.inputs[5] if len(reader.inputs) > 5 else None
    axes = reader.axes if listed is None else buffers.growth.types(listed)[-1].ints()
    along = range(len(lines)) if axes is None else [normal_axis(axis, len(lines)) for axis in axes]
    starts, sizes, strides = (_numbers(buffers, reader, name, len(along)) for name in ("start", "shape", "stride"))
    is_filled = False
    for axis, start, size, stride in zip(along, starts, sizes, strides, strict=True):
        assert size is not None
        # a slice with steps of 0 reads the same element again and again
        if not (lines[axis].slope or size.slope) or stride == Affine(0, 0):
            continue
        # other modes read something else outside of the tensor than garbage
        if reader.mode is SampleMode.STRICT_BOUNDS:
            is_filled |= bool(size.slope)
        elif lines[axis].slope and not (
            stride == Affine(0, 1) and _is_within(buffers.growth, start, size, lines[axis])
        ):
            raise Unbuffered(f"{reader.name!r} may read outside of what grows")
    return [lambda: setattr(reader, "mode", SampleMode.FILL)] if is_filled else []


def _is_within(growth: IterationLengths, start: Affine | None, size: Affine, length: Affine) -> bool:
    """Whether a slice always reads elements of the tensor."""
    if start is None:
        return False
    end = Affine(start.slope + size.slope, start.start + size.start - 1)
    return growth.is_below(Affine(0, -1), start) and growth.is_below(end, length)


def _numbers(buffers: Buffers, reader: ISliceLayer, name: str, count: int) -> list[Affine | None]:
    """The elements of a parameter of a slice, None for one that only a run knows."""
    position = reader.INPUT_OF[name]
    tensor = reader.inputs[position] if len(reader.inputs) > position else None
    if tensor is None:
        return [Affine(0, number) for number in Dims(getattr(reader, name))]
    return buffers.growth.values(tensor) or [None] * count


RULES: dict[type[ILayer], Callable[[Buffers, ILayer], list[Edit]]] = {
    IShapeLayer: _shape,
    IReduceLayer: _reduced,
    ISoftMaxLayer: _softmax,
    ITopKLayer: _top,
    ICumulativeLayer: _cumulative,
    INormalizationLayer: _normalized,
    IMatrixMultiplyLayer: _product,
    IGatherLayer: _gathered,
    IConcatenationLayer: _joined,
    IShuffleLayer: _reshaped,
    ISliceLayer: _sliced,
    IIfConditionalInputLayer: _passed,
    IIfConditionalOutputLayer: _passed,
    IRecurrenceLayer: _passed,
    ILoopOutputLayer: _loop_output,
}
"""The rules of layers that are not as any other."""
