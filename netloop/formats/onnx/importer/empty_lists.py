"""Lists that are empty before a loop which reads their tensors: how many axes these have follows from the body."""

from collections.abc import Callable, Iterator, Sequence
from itertools import product

from onnx import ValueInfoProto

from netloop.formats.onnx.importer.call import NodeCall
from netloop.formats.onnx.importer.inputs import dims_of
from netloop.model.formulas import as_dtype
from netloop.model.graph.tensor import ITensor
from netloop.values.types import UNKNOWN, SequenceType, Shape

MOST_AXES = 4
"""The most axes that the tensors of all such lists of a loop are tried with together, apart from declared ones."""


def with_ranked_lists(call: NodeCall, initial: Sequence[ITensor], build: Callable[..., list[ITensor]]) -> list[ITensor]:
    """The outputs of a Loop that ``build`` adds for its initial values, of which empty lists get tensors of some rank.

    The body imports with the rank that what it appends has. Few axes come first, and what the body declares.
    """
    for lists in _possible(call, initial):
        outputs = call.attempt(lambda lists=lists: build(*lists))
        if outputs is not None:
            return outputs
    return build(*initial)


def _possible(call: NodeCall, initial: Sequence[ITensor]) -> Iterator[Sequence[ITensor]]:
    """The initial values, as they are and with lists of tensors of some shape; none without empty lists."""
    inputs = call.subgraph("body").proto.input
    pairs = zip(initial, inputs[len(inputs) - len(initial) :], strict=True)
    choices = [_shapes(declared) if _is_unranked(x) else [None] for x, declared in pairs]
    if not any(map(_is_unranked, initial)):
        return
    yield initial
    for places in sorted(product(*(range(len(shapes)) for shapes in choices)), key=sum):
        if sum(places) > MOST_AXES:
            return
        chosen = [shapes[place] for shapes, place in zip(choices, places, strict=True)]
        yield [x if shape is None else _empty(call, x, shape) for x, shape in zip(initial, chosen, strict=True)]


def _is_unranked(x: ITensor) -> bool:
    return isinstance(x.type, SequenceType) and x.type.is_empty and x.type.element is None


def _shapes(declared: ValueInfoProto) -> list[Shape | None]:
    """The shapes that the tensors of a list may have, the declared one first."""
    dims = tuple(dims_of(declared.type.sequence_type.elem_type.tensor_type))
    ranks = [(UNKNOWN,) * rank for rank in range(MOST_AXES + 1)]
    # a list of tensors of unknown rank is declared to have no axes
    return [dims, *ranks] if dims else [*ranks]


def _empty(call: NodeCall, x: ITensor, shape: Shape) -> ITensor:
    return call.make.network.add_sequence([], as_dtype(x.type.dtype), shape).outputs[0]
