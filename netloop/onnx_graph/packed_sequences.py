"""The tokens of several sequences in one row."""

from typing import NamedTuple

from netloop.onnx_graph.graph import Value
from netloop.onnx_graph.node_builder import INT64, NodeBuilder


class Tokens(NamedTuple):
    """All tokens of all sequences in one row, int64.

    Attributes:
        sequence: the number of each token's sequence; the number of sequences for a token that belongs to none.
        position: the position of each token in its sequence.
        lengths: the lengths of the sequences.
    """

    sequence: Value
    position: Value
    lengths: Value


def packed_tokens(make: NodeBuilder, beginnings: Value, total: Value) -> Tokens:
    """The tokens of packed sequences, from the cumulative lengths of these."""
    bounds = make.cast(beginnings, INT64)
    one, places = make.number(1, INT64), make.arange(total)
    begun = make.cast(make.compare("LessOrEqual", make.expand_dims(bounds, [1]), places), INT64)
    sequence = make.op("Sub", make.reduce("ReduceSum", begun, (0,), keep=False), one)
    position = make.op("Sub", places, make.gather(bounds, sequence, 0))
    end = make.shape(bounds)
    after = make.op("Slice", bounds, make.int64s(1), end)
    before = make.op("Slice", bounds, make.int64s(0), make.int64s(-1))
    return Tokens(sequence, position, make.op("Sub", after, before))


def padded_tokens(make: NodeBuilder, batch: Value, count: Value, lengths: Value | None) -> Tokens:
    """The tokens of padded sequences, ``count`` in each."""
    places = make.arange(make.op("Mul", batch, count))
    width = make.op("Max", count, make.int64s(1))
    sequence = make.op("Div", places, width)
    whole = make.op("Expand", count, batch) if lengths is None else make.cast(lengths, INT64)
    return Tokens(sequence, make.op("Sub", places, make.op("Mul", sequence, width)), whole)
