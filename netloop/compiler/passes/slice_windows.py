"""Slices of lengths that only an iteration knows, read in windows by an inner loop, so that work is linear.

Read as long as the axis, each of them would take the time of all rows. The inner loop makes as many iterations as a
slice has windows. In it are the layers that compute row by row, and the reductions that end them accumulate.
"""

import math
from collections.abc import Iterable

import numpy as np

from netloop.compiler.passes.growth import Affine, IterationLengths, Unbuffered
from netloop.compiler.passes.rewriter import Rewriter, operand
from netloop.model.formulas import FormulaBuilder
from netloop.model.graph import ILayer, ITensor
from netloop.model.layers.gather import IGatherLayer
from netloop.model.layers.loop import ILoop
from netloop.model.layers.pointwise import (
    IActivationLayer,
    ICastLayer,
    IElementWiseLayer,
    IIdentityLayer,
    ISelectLayer,
    IUnaryLayer,
)
from netloop.model.layers.rearrange import ISqueezeLayer, IUnsqueezeLayer
from netloop.model.layers.reduce import NOTHING, IReduceLayer
from netloop.model.layers.slice import ISliceLayer
from netloop.model.nest import LayerStep, LoopStep
from netloop.values.enums import ElementWiseOperation as Op
from netloop.values.enums import GatherMode, SampleMode, TripLimit
from netloop.values.enums import ReduceOperation as Reduce
from netloop.values.types import HALVES, axes_of

ROW_BY_ROW = (IActivationLayer, ICastLayer, IElementWiseLayer, IIdentityLayer, ISelectLayer, ISqueezeLayer,
              IUnaryLayer, IUnsqueezeLayer)  # fmt: skip
"""Layers that compute a row from the same rows of what they read, if the result has one axis of rows."""
ROWS = Affine(1, 0)
"""The length of an axis with an element for each row of a slice."""
ACCUMULATED = {Reduce.SUM: Op.SUM, Reduce.AVG: Op.SUM, Reduce.PROD: Op.PROD, Reduce.MAX: Op.MAX, Reduce.MIN: Op.MIN}


class SliceWindows:
    """The layers of a loop that read slices, and can read their windows.

    Args:
        step: the loop.
        slices: the slices, which have one length.
        lengths: the lengths that follow from it.

    Attributes:
        tensors: the slices, and what has a row for each of their rows.

    Raises:
        Unbuffered: a layer reads all rows, and is no reduction that accumulates.
    """

    def __init__(self, step: LoopStep, slices: Iterable[ISliceLayer], lengths: IterationLengths) -> None:
        self._lengths, self._slices = lengths, [*slices]
        self._ends: list[IReduceLayer] = []
        self.tensors = {piece.outputs[0]: None for piece in self._slices}
        results = set[ITensor]()
        for inner in step.body.steps:
            reads_results = not results.isdisjoint(inner.reads)
            if self.tensors.keys().isdisjoint(inner.reads):
                results.update(inner.writes if reads_results else ())
                continue
            if reads_results or not isinstance(inner, LayerStep):
                raise Unbuffered(f"{inner.layers[0].name!r} reads slices whole")
            if self._computes_rows(inner.layer):
                self.tensors.update(dict.fromkeys(inner.writes))
            else:
                self._ends.append(self._reduction(inner.layer))
                results.update(inner.writes)

    def _axes(self, tensor: ITensor) -> list[int]:
        """The axes of rows of a tensor."""
        lines = self._lengths.lines(tensor)
        if any(line.slope and line != ROWS for line in lines):
            raise Unbuffered(f"{tensor.name!r} does not have an element for each row of a slice")
        return [axis for axis, line in enumerate(lines) if line.slope]

    def _computes_rows(self, layer: ILayer) -> bool:
        if isinstance(layer, IGatherLayer):
            is_plain = layer.mode is GatherMode.DEFAULT and not layer.num_elementwise_dims
            if not is_plain or layer.inputs[0] in self.tensors:
                return False
        elif not isinstance(layer, ROW_BY_ROW):
            return False
        return len(self._axes(layer.outputs[0])) == 1

    def _reduction(self, layer: ILayer) -> IReduceLayer:
        """A layer as a reduction of all rows."""
        if not isinstance(layer, IReduceLayer) or operand(layer, 0) not in self.tensors:
            raise Unbuffered(f"{layer.name!r} reads slices whole")
        kind = operand(layer, 0).type
        # sums of narrower integers wrap at 32 bits first, and means of integers round
        accumulates = kind.is_float or (kind.is_integer and kind.dtype.itemsize >= 4 and layer.op is not Reduce.AVG)
        if not accumulates or self._axes(layer.outputs[0]) or self._over(layer) is None:
            raise Unbuffered(f"{layer.name!r} reads slices whole")
        return layer

    def _over(self, layer: IReduceLayer) -> list[int] | None:
        """The axes that a layer reduces, from the front; None if only a run knows them."""
        rank, listed = operand(layer, 0).type.rank, layer.inputs[1] if len(layer.inputs) > 1 else None
        axes = axes_of(layer.axes, rank) if listed is None else listed.type.ints()
        return None if axes is None else [axis % rank for axis in axes]

    def read(self, rewriter: Rewriter, width: int) -> None:
        """Let the loop read windows of so many rows."""
        make, size = rewriter.make, self._lengths.trip(rewriter.make)
        loop = rewriter.network.add_loop()
        loop.add_trip_limit(make.floor_div(make.add(size, np.int64(width - 1)), np.int64(width)), TripLimit.COUNT)
        first = make.mul(make.counter(loop).outputs[0], np.int64(width))
        mask = make.less(make.add(make.arange(width), first), size)
        for layer in self._ends:
            rewriter.take_over(layer.outputs[0], self._accumulated(make, loop, layer, mask, size))
        for piece in self._slices:
            start = make.add(make.cast(operand(piece, 1), np.int64), first)
            axes = self._axes(piece.outputs[0])
            window = make.slice(operand(piece, 0), start, [width], axes=axes, outside=SampleMode.FILL)
            rewriter.take_over(piece.outputs[0], window)

    def _accumulated(
        self, make: FormulaBuilder, loop: ILoop, layer: IReduceLayer, mask: ITensor, size: ITensor
    ) -> ITensor:
        """The result of a reduction after the last window."""
        x, over, result = operand(layer, 0), self._over(layer), self._lengths.types(layer.outputs[0])[-1]
        (rows,), dtype = self._axes(x), x.type.dtype
        wide = np.dtype(np.float32) if dtype in HALVES else dtype
        op, nothing = ACCUMULATED[layer.op], np.asarray(NOTHING.get(layer.op, lambda _: 0)(wide), wide)
        masked = make.where(make.along(mask, x.type.rank, rows), make.cast(x, wide), make.constant(nothing))
        state = loop.add_recurrence(make.full(result.shape, nothing, wide))
        reduce = Reduce.SUM if op is Op.SUM else layer.op
        part = make.reduce(reduce, masked, over or (), layer.keep_dims)
        state.set_input(1, make.elementwise(op, state.outputs[0], part))
        total = make.last(loop, state)
        if layer.op is Reduce.AVG:
            others = math.prod(self._lengths.lines(x)[axis].start for axis in over or () if axis != rows)
            total = make.div(total, make.cast(make.mul(size, np.int64(others)), wide))
        return make.cast(total, dtype)
