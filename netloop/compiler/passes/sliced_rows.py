"""Let loops over slices of lengths that only an iteration knows, such as embedding bags, be compiled."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from netloop.compiler.passes.base import Pass
from netloop.compiler.passes.growing_layers import Buffers
from netloop.compiler.passes.growing_states import FAR
from netloop.compiler.passes.growth import IterationLengths, Unbuffered
from netloop.compiler.passes.open_slices import is_open, moved, sliced_axis
from netloop.compiler.passes.rewriter import Rewriter, operand
from netloop.compiler.passes.slice_windows import SliceWindows
from netloop.model.formulas import FormulaBuilder
from netloop.model.formulas.rearrange import Length
from netloop.model.graph import ILayer, ITensor, TypeTable
from netloop.model.layers.gather import IGatherLayer
from netloop.model.layers.loop import ILoop
from netloop.model.layers.pointwise import IElementWiseLayer, ISelectLayer
from netloop.model.layers.slice import ISliceLayer
from netloop.model.layers.sources import IShapeLayer
from netloop.model.nest import LoopStep, Scopes, walk
from netloop.values.enums import ElementWiseOperation as Op
from netloop.values.enums import SampleMode
from netloop.values.types import UNKNOWN, TensorType

MOST_ELEMENTS = 1 << 16
"""The most elements of a tensor that takes the length of the whole axis: a program computes them in 10 to 60 us, and
the layers of an iteration take Python a few hundred."""

FEW_ELEMENTS = 1 << 12
"""The most elements of a tensor that takes the length of the whole axis, although its layers can read windows: a
program computes them in about the time that a loop over windows takes to begin."""

WIDTH = 16
"""The number of rows of a window. Maxima of 32 and 64 rows take XLA three times as long, and sums as long."""

USUAL = 1 << 10
"""The length that an axis is taken to have where only a run knows it."""


class SlicedRows(Pass):
    """Let a loop read the whole axis, from the start of a slice on, where the length of the slice varies.

    The layers behind the slice read its first elements, and those that read all of them, such as sums, get masks: a
    program has a shape for all iterations.
    """

    name = "sliced_rows"
    level = 1
    # lengths that are the same in all iterations are known
    after = ("fixed_sizes", "growing_states")
    on_host = True
    rule = (
        "In loops, slices whose length depends on data, such as the bags of an embedding bag, are read as long as the "
        "axis, and sums and other reductions of them get masks, if this is all that keeps the loop from being compiled "
        f"and no tensor of it has more than {MOST_ELEMENTS:,} elements then. On CPUs, where one has more than "
        f"{FEW_ELEMENTS:,}, and reductions end layers that compute row by row, an inner loop reads {WIDTH} rows at a "
        "time, as many as the slice has."
    )

    def rewrite(self, rewriter: Rewriter) -> bool:
        is_changed, slices = False, defaultdict[ILoop, list[ISliceLayer]](list)
        for piece in rewriter.layers(ISliceLayer):
            for loop in rewriter.scopes.chain_of(piece.outputs[0])[-1:]:
                slices[loop].append(piece)
        # the inner ones first
        for loop in [step.loop for step in rewriter.loops() if step.loop in slices][::-1]:
            try:
                number = _read_whole(rewriter, loop, slices[loop])
            except Unbuffered as reason:
                rewriter.refusals.setdefault(loop, str(reason))
                continue
            if number:
                is_changed, notes = True, rewriter.notes
                rewriter.read()
                rewriter.notes = [*notes, f"{loop.name!r} reads {number} slices as long as their axes"]
        return is_changed


def _read_whole(rewriter: Rewriter, loop: ILoop, slices: Iterable[ISliceLayer]) -> int:
    """Edit a loop with some slices; the number of those that are read whole.

    Raises:
        Unbuffered: a program cannot hold the loop; nothing is edited then.
    """
    slices = [piece for piece in slices if is_open(piece) and _is_inside(piece)]
    if not slices:
        return 0
    step = next(step for step in rewriter.loops() if step.loop is loop)
    if len({piece.inputs[2] for piece in slices}) > 1:
        raise Unbuffered("its slices have several lengths")
    lengths = SliceLengths(rewriter, step, slices)
    if windows := _windows(rewriter, step, slices, lengths):
        windows.read(rewriter, WIDTH)
        return len(slices)
    # what is joined to a slice needs room too
    room, ahead = lengths.room(rewriter.make), lengths.ahead()
    whole = room + ahead if isinstance(room, int) else rewriter.make.add(room, np.int64(ahead))
    buffers = Buffers(rewriter, lengths, whole, lengths.last + ahead)
    _check(step, lengths, buffers)
    edits = [edit for layer in lengths.layers for edit in buffers.edits(layer)]
    for edit in edits:
        edit()
    for piece in slices:
        _read_on(buffers, piece)
    return len(slices)


def _windows(
    rewriter: Rewriter, step: LoopStep, slices: Sequence[ISliceLayer], lengths: "SliceLengths"
) -> SliceWindows | None:
    """The windows of slices that are long, if the layers of the loop can read windows."""
    # reverse mode needs a bound of the windows, and GPUs wait for the host in each iteration
    if rewriter.is_pure or rewriter.platform != "cpu":
        return None
    try:
        windows = SliceWindows(step, slices, lengths)
        sizes = [math.prod(line.at(lengths.longest) for line in lengths.lines(tensor)) for tensor in windows.tensors]
    except Unbuffered:
        return None
    leaves = not windows.tensors.keys().isdisjoint(_leaving(step))
    return windows if max(sizes) > FEW_ELEMENTS and not leaves else None


def _leaving(step: LoopStep) -> list[ITensor]:
    """The tensors of an iteration that the next one or the results of the loop read."""
    return [*step.rows, *step.next_states, *(output.tensor(0) for output in step.outputs)]


def _check(step: LoopStep, lengths: "SliceLengths", buffers: Buffers) -> None:
    """Check that a program can hold the loop, and that its tensors are small."""
    for tensor in _leaving(step):
        if buffers.axes(tensor):
            raise Unbuffered(f"{tensor.name!r}, whose length varies, leaves the iteration")
    tensors = (tensor for inner in walk(step.body) for layer in inner.layers for tensor in layer.outputs)
    for tensor in tensors:
        if math.prod(line.at(lengths.longest) for line in buffers.lines(tensor)) > MOST_ELEMENTS:
            raise Unbuffered(f"{tensor.name!r} would have more than {MOST_ELEMENTS:,} elements")


def _read_on(buffers: Buffers, piece: ISliceLayer) -> None:
    """Let the readers of a slice read the elements from its start on, as many as there is room for."""
    old, axis = piece.outputs[0], sliced_axis(piece)
    room = buffers.room(buffers.lines(old)[axis])
    rows = buffers.make.slice(operand(piece, 0), operand(piece, 1), [room], axes=[axis], outside=SampleMode.FILL)
    buffers.replace(old, rows)


def _is_inside(piece: ISliceLayer) -> bool:
    """Whether a slice is from its start to an end that are both limited to the axis, so that it cannot fail."""
    start, size = piece.inputs[1], _without_neutral(operand(piece, 2))
    if (
        start is None
        or operand(piece, 0).type.shape[sliced_axis(piece)] == 0
        or not isinstance(size, IElementWiseLayer)
        or size.op is not Op.SUB
    ):
        return False
    is_from_start = moved(operand(size, 1)) is moved(start)
    is_possible = is_from_start and _has_limit(start, 0, Op.MAX) and _has_limit(operand(piece, 2), 0, Op.MAX)
    return is_possible and _ends_inside(operand(size, 0), piece)


def _without_neutral(tensor: ITensor) -> ILayer | None:
    """The layer that computes a length, of which numbers below 0 count as 0, before steps of 1 are counted."""
    neutral = {Op.MAX: 0, Op.SUM: 0, Op.DIV: 1, Op.FLOOR_DIV: 1}
    while True:
        layer = moved(tensor).producer
        if not isinstance(layer, IElementWiseLayer) or _ints(operand(layer, 1)) != {neutral.get(layer.op)}:
            return layer
        tensor = operand(layer, 0)


def _has_limit(tensor: ITensor, limit: int, op: Op) -> bool:
    """Whether a tensor is at least a limit (MAX), or at most (MIN), by how it is computed."""
    numbers, layer = _ints(tensor), moved(tensor).producer
    if numbers is not None:
        return min(numbers) >= limit if op is Op.MAX else max(numbers) <= limit
    if isinstance(layer, ISelectLayer):
        return all(_has_limit(branch, limit, op) for branch in _branches(layer))
    if op is Op.MAX and limit == 0 and _is_shape(layer):
        return True
    if not isinstance(layer, IElementWiseLayer) or layer.op not in (Op.MIN, Op.MAX):
        return False
    sides = (_has_limit(operand(layer, at), limit, op) for at in (0, 1))
    return any(sides) if layer.op is op else all(sides)


def _ends_inside(end: ITensor, piece: ISliceLayer) -> bool:
    """Whether the end of a slice is limited to the length of its axis."""
    whole, axis = operand(piece, 0), sliced_axis(piece)
    length = whole.type.shape[axis]
    if length != UNKNOWN:
        return _has_limit(end, length, Op.MIN)
    layer = moved(end).producer
    if not isinstance(layer, IElementWiseLayer) or layer.op is not Op.MIN:
        return False
    return any(_is_length(operand(layer, at), whole, axis) for at in (0, 1))


def _is_length(tensor: ITensor, whole: ITensor, axis: int) -> bool:
    """Whether a tensor is the length of an axis, or less."""
    layer = moved(tensor).producer
    if isinstance(layer, ISelectLayer):
        return all(_is_length(branch, whole, axis) for branch in _branches(layer))
    if isinstance(layer, IElementWiseLayer) and layer.op is Op.SUB:
        return _has_limit(operand(layer, 1), 0, Op.MAX) and _is_length(operand(layer, 0), whole, axis)
    if layer is None or not _is_shape(layer):
        return False
    shape = operand(layer, 0).producer
    return shape is not None and operand(shape, 0) is whole and _ints(operand(layer, 1)) == {axis}


def _is_shape(layer: ILayer | None) -> bool:
    """Whether a layer takes lengths of a shape."""
    return isinstance(layer, IGatherLayer) and isinstance(operand(layer, 0).producer, IShapeLayer)


def _branches(layer: ISelectLayer) -> list[ITensor]:
    """The tensors of which a layer may select, given what is known of its condition."""
    condition = operand(layer, 0).type.value
    taken = {True, False} if condition is None else {*condition.reshape(-1).tolist()}
    return [operand(layer, 1 if flag else 2) for flag in taken]


def _ints(tensor: ITensor) -> set[int] | None:
    numbers = tensor.type.ints()
    return {*numbers} if numbers else None


class SliceLengths(IterationLengths):
    """The lengths in the body of a loop that follow from the length of its slices, which stands for the iteration.

    Args:
        rewriter: the copy of the network.
        step: the loop.
        slices: slices of one length.

    Attributes:
        longest: the largest length of the slices, or a usual one if only a run knows it.
    """

    def __init__(self, rewriter: Rewriter, step: LoopStep, slices: Sequence[ISliceLayer]) -> None:
        types, self._step = rewriter.network.types, step
        self._size, self._axis = operand(slices[0], 2), sliced_axis(slices[0])
        outside = {tensor: kind for tensor in step.reads if isinstance(kind := types.of(tensor), TensorType)}
        self._outside, self._slices = outside, {piece.outputs[0]: piece for piece in slices}
        self._wholes = [operand(piece, 0) for piece in slices]
        lengths = {whole.type.shape[sliced_axis(piece)] for piece, whole in zip(slices, self._wholes, strict=True)}
        if UNKNOWN in lengths and len({*self._wholes}) > 1:
            raise Unbuffered("it slices several tensors whose lengths only a run knows")
        self.longest = USUAL if UNKNOWN in lengths else max(lengths)
        super().__init__(FAR if UNKNOWN in lengths else self.longest)

    def room(self, make: FormulaBuilder) -> Length:
        """The largest length of the slices; a tensor if only a run knows it."""
        return make.length(self._wholes[0], self._axis) if self.last == FAR else self.longest

    @property
    def layers(self) -> Iterable[ILayer]:
        dependent = {*self._slices}
        for inner in walk(self._step.body):
            for layer in inner.layers:
                if layer.outputs and layer.outputs[0] not in self._slices and not dependent.isdisjoint(layer.inputs):
                    dependent.update(layer.outputs)
                    yield layer

    def table(self, trip: int) -> TypeTable:
        parts: dict[ITensor, TensorType] = {}
        for tensor, piece in self._slices.items():
            shape = list(operand(piece, 0).type.shape)
            shape[sliced_axis(piece)] = trip
            parts[tensor] = operand(piece, 0).type.with_shape(shape).without_value()
        return TypeTable({**self._outside, **parts})

    def trip(self, make: FormulaBuilder) -> ITensor:
        return make.maximum(make.cast(make.scalar(self._size), np.int64), np.int64(0))

    def varies(self, tensor: ITensor, scopes: Scopes) -> bool:
        return any(tensor in layer.outputs for layer in self.layers)
