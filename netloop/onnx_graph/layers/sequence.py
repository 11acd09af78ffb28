"""Sequences of tensors and optional values."""

from netloop.diagnostics import require
from netloop.layers.sequence import (
    IOptionalGetLayer,
    IOptionalHasLayer,
    IOptionalLayer,
    ISequenceAtLayer,
    ISequenceConcatenationLayer,
    ISequenceEraseLayer,
    ISequenceInsertLayer,
    ISequenceLayer,
    ISequenceLengthLayer,
    ISequenceSplitLayer,
)
from netloop.onnx_graph.exporter_table import exports
from netloop.onnx_graph.graph import Value
from netloop.onnx_graph.node_builder import BF16, SMALL, NodeBuilder


def _made(make: NodeBuilder, op: str, *inputs: Value | None, **attributes: object) -> Value:
    """Add an operator on sequences or optional values."""
    dtype = make.out().dtype
    for each in (dtype, *(value.dtype for value in inputs if value is not None)):
        require(each != BF16 and each not in SMALL, f"ONNX has neither sequences nor optional values of {each}")
    made = Value(dtype)
    make.node(op, inputs, [made], **attributes)
    return made


def _position(make: NodeBuilder, number: int, position: Value | None) -> Value | None:
    return position if position is None or make.type(number).rank == 0 else make.scalar(position)


@exports(ISequenceLayer)
def sequence(layer: ISequenceLayer, make: NodeBuilder, *parts: Value) -> Value:
    if parts:
        return _made(make, "SequenceConstruct", *parts)
    return _made(make, "SequenceEmpty", dtype=make.out().dtype)


@exports(ISequenceInsertLayer)
def insert(
    layer: ISequenceInsertLayer, make: NodeBuilder, sequence: Value, tensor: Value, position: Value | None = None
) -> Value:
    return _made(make, "SequenceInsert", sequence, tensor, _position(make, 2, position))


@exports(ISequenceEraseLayer)
def erase(layer: ISequenceEraseLayer, make: NodeBuilder, sequence: Value, position: Value | None = None) -> Value:
    return _made(make, "SequenceErase", sequence, _position(make, 1, position))


@exports(ISequenceAtLayer)
def at(layer: ISequenceAtLayer, make: NodeBuilder, sequence: Value, position: Value) -> Value:
    return _made(make, "SequenceAt", sequence, _position(make, 1, position))


@exports(ISequenceLengthLayer)
def length(layer: ISequenceLengthLayer, make: NodeBuilder, sequence: Value) -> Value:
    return _made(make, "SequenceLength", sequence)


@exports(ISequenceConcatenationLayer)
def concatenation(layer: ISequenceConcatenationLayer, make: NodeBuilder, sequence: Value) -> Value:
    return _made(make, "ConcatFromSequence", sequence, axis=layer.axis, new_axis=int(layer.new_axis))


@exports(ISequenceSplitLayer)
def split(layer: ISequenceSplitLayer, make: NodeBuilder, x: Value, lengths: Value | None = None) -> Value:
    return _made(make, "SplitToSequence", x, lengths, axis=layer.axis, keepdims=int(layer.keep_axis))


# ---------------------------------------------------------------------- optional values


@exports(IOptionalLayer)
def optional(layer: IOptionalLayer, make: NodeBuilder, x: Value | None = None) -> Value:
    return _made(make, "Optional", x, type=make.out().present if x is None else None)


@exports(IOptionalHasLayer)
def has(layer: IOptionalHasLayer, make: NodeBuilder, x: Value) -> Value:
    return _made(make, "OptionalHasElement", x)


@exports(IOptionalGetLayer)
def get(layer: IOptionalGetLayer, make: NodeBuilder, x: Value) -> Value:
    return _made(make, "OptionalGetElement", x)
