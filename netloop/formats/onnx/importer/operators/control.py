"""Control flow."""

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
import onnx

from netloop.formats.onnx.importer.empty_lists import with_ranked_lists
from netloop.formats.onnx.importer.operators import Maybe, NodeCall, operator
from netloop.formats.shared import IterationResult, LoopLimits, LoopNames, StackedOutput, build_loop
from netloop.formats.shared.alternatives import Split, Value, if_outputs
from netloop.model.formulas import FormulaBuilder
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.loop import ILoop
from netloop.values.diagnostics import require
from netloop.values.types import UNKNOWN


@operator("If")
def conditional(call: NodeCall, condition: ITensor) -> list[Value]:
    """One of two graphs; a constant condition imports only that one."""
    make = call.make
    condition = make.scalar(condition)
    value = make.known(condition)
    if value is not None:
        return call.subgraph("then_branch" if value else "else_branch").values([])
    with call.assumptions.assume(condition, True):
        then = call.subgraph("then_branch").values([])
    with call.assumptions.assume(condition, False):
        otherwise = call.subgraph("else_branch").values([])
    require(len(then) == len(otherwise), f"one branch has {len(then)} outputs, and the other {len(otherwise)}")
    return if_outputs(Split(make.network, condition, call.node.name), then, otherwise)


@operator("Loop")
def loop(call: NodeCall, trips: Maybe = None, first: Maybe = None, *initial: ITensor) -> list[ITensor]:
    """A counted loop, a conditional loop, or both."""
    require(
        trips is not None or first is not None,
        "the loop has neither a trip count nor a condition",
        "by the ONNX standard it never ends",
        "give it true as the condition, its second input, if its body says when it ends, as onnxruntime takes it",
    )
    return with_ranked_lists(call, initial, partial(_loop, call, trips, first))


def _loop(call: NodeCall, trips: Maybe, first: Maybe, *initial: ITensor) -> list[ITensor]:
    make = call.make
    most = None if trips is None else make.maximum(make.cast(make.scalar(trips), np.int64), 0)
    true = make.constant(True)

    graph = call.subgraph("body").proto
    inputs, results = names_of(graph.input), names_of(graph.output)

    def body(loop: ILoop, iteration: ITensor, values: Sequence[ITensor]) -> IterationResult:
        tensors = [true, *values] if first is not None else values
        condition, *outputs = call.subgraph("body")(iteration, *tensors)
        outputs, rows = split_outputs(outputs, len(initial), results[1:])
        return IterationResult(condition, outputs if first is not None else [make.scalar(condition), *outputs], rows)

    declared = graph.output[1 + len(initial) :]
    # without a condition input the loop ignores the body's condition, and the body reads its previous one as an input
    if first is None:
        names = LoopNames(call.node.name, inputs[1:], results, *inputs[:1])
        left = build_loop(make, names, [true, *initial], LoopLimits(most, None), body)
        return [*left.last[1:], *as_declared(make, left.rows, declared)]
    names = LoopNames(call.node.name, inputs[2:], results[1:], *inputs[:1])
    left = build_loop(make, names, initial, LoopLimits(most, make.scalar(first), most), body)
    return [*left.last, *as_declared(make, left.rows, declared)]


def names_of(values: Iterable[onnx.ValueInfoProto]) -> list[str]:
    """The names of the inputs or outputs of a graph."""
    return [value.name for value in values]


def split_outputs(
    outputs: Sequence[ITensor], count: int, names: Sequence[str]
) -> tuple[list[ITensor], list[StackedOutput]]:
    """The outputs of a loop body, which have names: its carried values and its rows."""
    require(len(outputs) >= count, f"the body has {len(outputs)} outputs for {count} values that it carries")
    rows = zip(outputs[count:], names[count:], strict=True)
    return list(outputs[:count]), [StackedOutput(tensor, name=name) for tensor, name in rows]


def as_declared(
    make: FormulaBuilder, rows: Sequence[ITensor], declared: Sequence[onnx.ValueInfoProto]
) -> list[ITensor]:
    """The stacked rows, with the row dims that the graph of the body declares.

    The dims of the rows of a loop without iterations follow from nothing else.
    """
    return [_as_declared(make, row, one) for row, one in zip(rows, declared, strict=True)]


def _as_declared(make: FormulaBuilder, rows: ITensor, declared: onnx.ValueInfoProto) -> ITensor:
    dims = declared.type.tensor_type.shape.dim
    own = rows.type.shape[1:]
    wanted = [dimension.dim_value if dimension.HasField("dim_value") else UNKNOWN for dimension in dims]
    if len(wanted) != len(own) or not any(a == UNKNOWN != b for a, b in zip(own, wanted, strict=True)):
        return rows
    lengths = [
        make.length(rows, axis) if number == UNKNOWN else number for axis, number in enumerate([UNKNOWN, *wanted])
    ]
    return make.reshape(rows, lengths)
