"""Constants, fills and shapes."""

from netloop.formats.onnx_graph.layers import FLOAT, INT64, NodeBuilder, Value, exports
from netloop.formats.onnx_graph.node_builder import DOUBLE, WIDE
from netloop.model.layers.sources import IConstantLayer, IFillLayer, IShapeLayer
from netloop.values.enums import FillOperation
from netloop.values.types import numpy_type


@exports(IConstantLayer)
def constant(layer: IConstantLayer, make: NodeBuilder) -> Value:
    return make.constant(layer.evaluate())


@exports(IShapeLayer)
def shape(layer: IShapeLayer, make: NodeBuilder, x: Value) -> Value:
    return make.shape(x)


@exports(IFillLayer)
def fill(
    layer: IFillLayer,
    make: NodeBuilder,
    shape: Value | None = None,
    alpha: Value | None = None,
    beta: Value | None = None,
) -> Value:
    dtype = numpy_type(layer.to_type)
    wide = WIDE.get(dtype, dtype)
    low = make.number(layer.alpha, wide) if alpha is None else make.cast(alpha, wide)
    steps = make.number(layer.beta, wide) if beta is None else make.cast(beta, wide)
    lengths = make.int64s(*layer.shape) if shape is None else make.cast(shape, INT64)
    value = _random(layer, make, lengths, low, steps) if layer.draws else _linspace(make, lengths, low, steps)
    return make.cast(value, dtype)


def _random(layer: IFillLayer, make: NodeBuilder, lengths: Value, low: Value, high: Value) -> Value:
    """Random numbers of the same distribution; the runtime chooses the numbers."""
    zeros = make.full(lengths, 0, low.dtype if low.dtype in (FLOAT, DOUBLE) else FLOAT)
    if layer.operation is FillOperation.RANDOM_NORMAL:
        return make.op("Add", make.op("Mul", make.op("RandomNormalLike", zeros), high), low)
    drawn = make.op("RandomUniformLike", zeros)
    drawn = make.op("Add", make.op("Mul", drawn, make.op("Sub", high, low)), low)
    return make.where(make.compare("Less", drawn, high), drawn, low)


def _linspace(make: NodeBuilder, lengths: Value, first: Value, steps: Value) -> Value:
    rank = make.out().rank
    result = make.op("Expand", first, lengths)
    for axis in range(rank):
        count = make.op("Slice", lengths, make.int64s(axis), make.int64s(axis + 1))
        index = make.cast(make.arange(count), first.dtype)
        step = make.reshape(steps, [1]) if rank == 1 else make.gather(steps, make.int64s(axis), 0)
        along = make.op("Mul", index, step)
        result = make.op("Add", result, make.expand_dims(along, range(1, rank - axis)))
    return result
