"""Sequences of tensors and optional values."""

from netloop.formats.onnx_graph.layers import NodeBuilder, Value, exports
from netloop.formats.onnx_graph.node_builder import BF16, SMALL
from netloop.model.graph.layer import ILayer
from netloop.model.layers.sequence import (
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
from netloop.values.diagnostics import require

OPERATORS: dict[type[ILayer], str] = {
    ISequenceInsertLayer: "SequenceInsert",
    ISequenceEraseLayer: "SequenceErase",
    ISequenceAtLayer: "SequenceAt",
    ISequenceLengthLayer: "SequenceLength",
    IOptionalHasLayer: "OptionalHasElement",
    IOptionalGetLayer: "OptionalGetElement",
}
"""The operators of layers without attributes."""

POSITIONS: dict[type[ILayer], int] = {ISequenceInsertLayer: 2, ISequenceEraseLayer: 1, ISequenceAtLayer: 1}
"""The inputs that are positions in a sequence, which are 0-D in ONNX."""


def _made(make: NodeBuilder, op: str, *inputs: Value | None, **attributes: object) -> Value:
    """Add an operator on sequences or optional values."""
    dtype = make.out().dtype
    for other in (dtype, *(value.dtype for value in inputs if value is not None)):
        require(other != BF16 and other not in SMALL, f"ONNX has neither sequences nor optional values of {other}")
    result = Value(dtype)
    make.node(op, inputs, [result], **attributes)
    return result


@exports(*OPERATORS)
def one_operator(layer: ILayer, make: NodeBuilder, *inputs: Value | None) -> Value:
    place = POSITIONS.get(type(layer))
    values = [
        make.scalar(value) if value is not None and position == place and make.type(position).rank else value
        for position, value in enumerate(inputs)
    ]
    return _made(make, OPERATORS[type(layer)], *values)


@exports(ISequenceLayer)
def sequence(layer: ISequenceLayer, make: NodeBuilder, *parts: Value) -> Value:
    if parts:
        return _made(make, "SequenceConstruct", *parts)
    return _made(make, "SequenceEmpty", dtype=make.out().dtype)


@exports(ISequenceConcatenationLayer)
def concatenation(layer: ISequenceConcatenationLayer, make: NodeBuilder, sequence: Value) -> Value:
    return _made(make, "ConcatFromSequence", sequence, axis=layer.axis, new_axis=int(layer.new_axis))


@exports(ISequenceSplitLayer)
def split(layer: ISequenceSplitLayer, make: NodeBuilder, x: Value, lengths: Value | None = None) -> Value:
    return _made(make, "SplitToSequence", x, lengths, axis=layer.axis, keepdims=int(layer.keep_axis))


@exports(IOptionalLayer)
def optional(layer: IOptionalLayer, make: NodeBuilder, x: Value | None = None) -> Value:
    return _made(make, "Optional", x, type=make.out().present if x is None else None)
