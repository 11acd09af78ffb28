"""Sequences and optional values."""

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from netloop.formats.onnx.importer.inputs import DeclaredType
from netloop.formats.onnx.importer.operators import Maybe, NodeCall, operator
from netloop.formats.onnx.tensors import element_type
from netloop.formats.shared import IterationResult, LoopLimits, LoopNames, build_loop
from netloop.model.formulas import as_dtype
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.loop import ILoop
from netloop.values.diagnostics import require
from netloop.values.types import OptionalType, SequenceType


@operator("SequenceEmpty", since=11)
def sequence_empty(call: NodeCall) -> ITensor:
    """Empty sequence."""
    return call.make.sequence([], as_dtype(element_type(call.attribute("dtype", TensorProto.FLOAT))))


@operator("SequenceConstruct", since=11)
def sequence_construct(call: NodeCall, *inputs: ITensor) -> ITensor:
    """Sequence of the inputs."""
    require(len(inputs) > 0, "the sequence has no tensors", fix="use SequenceEmpty for an empty sequence")
    return call.make.sequence(inputs)


@operator("SequenceInsert", since=11)
def sequence_insert(call: NodeCall, sequence: ITensor, tensor: ITensor, position: Maybe = None) -> ITensor:
    """Sequence with one more tensor."""
    return call.make.sequence_insert(sequence, tensor, position)


@operator("SequenceErase", since=11)
def sequence_erase(call: NodeCall, sequence: ITensor, position: Maybe = None) -> ITensor:
    """Sequence with one tensor removed."""
    return call.make.sequence_erase(sequence, position)


@operator("SequenceAt", since=11)
def sequence_at(call: NodeCall, sequence: ITensor, position: ITensor) -> ITensor:
    """Tensor at a position of a sequence."""
    return call.make.sequence_at(sequence, position)


@operator("SequenceLength", since=11)
def sequence_length(call: NodeCall, sequence: ITensor) -> ITensor:
    """Number of tensors in a sequence."""
    return call.make.sequence_length(sequence)


@operator("ConcatFromSequence", since=11)
def sequence_concatenation(call: NodeCall, sequence: ITensor) -> ITensor:
    """Concatenation of the tensors of a sequence, along an existing or a new axis."""
    return call.make.sequence_concat(sequence, call.attribute("axis"), call.flag("new_axis"))


@operator("SplitToSequence", since=11)
def sequence_split(call: NodeCall, x: ITensor, lengths: Maybe = None) -> ITensor:
    """Parts of a tensor along an axis, as a sequence; given lengths keep the axis."""
    keep_axis = lengths is not None or call.flag("keepdims", True)
    return call.make.sequence_split(x, lengths, call.attribute("axis", 0), keep_axis)


@operator("SequenceMap", since=17)
def sequence_map(call: NodeCall, first: ITensor, *others: ITensor) -> list[ITensor]:
    """Sequences of what a graph makes of the tensors at each position."""
    make, body = call.make, call.subgraph("body")

    def step(loop: ILoop, position: ITensor, lists: Sequence[ITensor]) -> IterationResult:
        at = [make.sequence_at(x, position) if isinstance(x.type, SequenceType) else x for x in (first, *others)]
        longer = [make.sequence_insert(so_far, x) for so_far, x in zip(lists, body(*at), strict=True)]
        return IterationResult(make.constant(True), longer)

    dtypes = [element_type(output.type.tensor_type.elem_type) for output in body.proto.output]
    none, unnamed = [make.sequence([], as_dtype(dtype)) for dtype in dtypes], [""] * len(dtypes)
    names, length = LoopNames(call.node.name, unnamed, unnamed), make.sequence_length(first)
    return [*build_loop(make, names, none, LoopLimits(length, None), step).last]


# ---------------------------------------------------------------------- optional values


@operator("Optional", since=15)
def optional(call: NodeCall, x: Maybe = None) -> ITensor:
    """Optional value, of the type of the input or of the attribute."""
    if x is not None:
        return call.make.network.add_optional(x).outputs[0]
    element = call.attribute("type")
    require(element is not None, "the optional value has neither an input nor a type")
    type_ = DeclaredType(element)
    require(not type_.optional, "an optional value must hold a tensor or a sequence")
    require(type_.sequence or type_.shape is not None, "the type of the tensor has an unknown number of axes")
    return call.make.network.add_optional(None, type_.dtype, None if type_.sequence else type_.shape).outputs[0]


@operator("OptionalHasElement", since=15)
def optional_has(call: NodeCall, x: Maybe = None) -> ITensor:
    """Whether an optional value is present."""
    if x is None or not isinstance(x.type, OptionalType):
        return call.make.constant(np.asarray(x is not None))
    return call.make.network.add_optional_has(x).outputs[0]


@operator("OptionalGetElement", since=15)
def optional_get(call: NodeCall, x: ITensor) -> ITensor:
    """Value of an optional, which must be present."""
    return call.make.network.add_optional_get(x).outputs[0] if isinstance(x.type, OptionalType) else x
