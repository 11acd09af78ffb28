"""Padding with zeros, and the reversal of sequences."""

from netloop.formats.onnx_graph.layers import INT64, NodeBuilder, Value, exports
from netloop.model.layers.padding import IPaddingLayer, IReverseSequenceLayer


@exports(IPaddingLayer)
def padding(layer: IPaddingLayer, make: NodeBuilder, x: Value) -> Value:
    before, after = list(layer.pre_padding_nd), list(layer.post_padding_nd)
    kept = [0] * (make.type(0).rank - 2)
    return make.op("Pad", x, make.int64s(*kept, *before, *kept, *after))


@exports(IReverseSequenceLayer)
def reverse_sequence(layer: IReverseSequenceLayer, make: NodeBuilder, x: Value, sequence_lens: Value) -> Value:
    rank = make.type(0).rank
    batch, sequence = layer.batch_axis % rank, layer.sequence_axis % rank
    order = [batch, sequence, *(axis for axis in range(rank) if axis not in (batch, sequence))]
    rows = make.transpose(x, order)
    places = make.expand_dims(make.arange(make.length(x, make.type(0), sequence)), [0])
    lengths = make.expand_dims(make.cast(sequence_lens, INT64), [1])
    last = make.op("Sub", lengths, make.number(1, INT64))
    mirrored = make.where(make.compare("Less", places, lengths), make.op("Sub", last, places), places)
    value = make.op("GatherND", rows, make.expand_dims(mirrored, [2]), batch_dims=1)
    return make.transpose(value, [order.index(axis) for axis in range(rank)])
