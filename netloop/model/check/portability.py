"""Rules about constructs that netloop runs and TensorRT refuses, leaves undefined or runs otherwise.

Each follows from TensorRT's documentation. Constructs that are only slow in TensorRT are not among them.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping

from netloop.model.check.demand import past_the_end, too_short_for
from netloop.model.check.rule import Subject, Violation, rule
from netloop.model.graph import ILayer, ITensor, Operation
from netloop.model.layers.conditional import (
    IConditionLayer,
    IIfConditional,
    IIfConditionalInputLayer,
    IIfConditionalOutputLayer,
)
from netloop.model.layers.loop import (
    IIteratorLayer,
    ILoop,
    ILoopBoundaryLayer,
    ILoopOutputLayer,
    IRecurrenceLayer,
    ITripLimitLayer,
)
from netloop.model.layers.plugin import IPluginV3Layer
from netloop.model.layers.rearrange import IConcatenationLayer
from netloop.model.layers.sources import IConstantLayer
from netloop.model.nest.data_flow import DataFlow
from netloop.model.plugins.jax_plugin import JaxPlugin
from netloop.values.diagnostics import Severity
from netloop.values.enums import DataType, LoopOutput, TripLimit
from netloop.values.types import OWN, UNKNOWN, TensorType, UnrankedType, data_type, normal_axis

MOST_CONCATENATED = 10_000
"""The limit that TensorRT's documentation of IConcatenationLayer gives."""


def _known(subject: Subject, tensor: ITensor | None) -> int | None:
    """The value of a scalar, if it is known before the network runs."""
    tensor_type = subject.type(tensor)
    values = tensor_type.ints() if tensor_type is not None and tensor_type.rank == 0 and tensor_type.is_index else None
    return values[0] if values else None


# ---------------------------------------------------------------------------- wiring


@rule("NL108", Severity.PORTABILITY)
def output_is_not_an_input(subject: Subject) -> Iterator[Violation]:
    """TensorRT cannot return an input unchanged.

    Here the output is the array that was passed in.

    Wrong: ``network.mark_output(x)`` of an input ``x``
    Right: ``network.mark_output(network.add_identity(x).get_output(0))``
    """
    for tensor in subject.network.outputs:
        if tensor.is_network_input:
            fix = "mark the output of network.add_identity(tensor) instead"
            yield Violation(tensor, f"the network output {tensor.name!r} is an input of the network", fix)


# ---------------------------------------------------------------------------- loops


@rule("NL213", Severity.PORTABILITY)
def while_follows_from_recurrences(subject: Subject) -> Iterator[Violation]:
    """TensorRT computes a WHILE before each iteration, from recurrences of its loop and tensors from outside.

    The layers in between include no iterator, and no output of an inner loop. Here the condition is computed from the
    state of the coming iteration, whatever it reads.

    Wrong: a WHILE limit that compares the slice of an iterator
    Right: a recurrence that carries the comparison, made from the slice of the iteration before
    """
    for limit in subject.live(ITripLimitLayer):
        source = limit.get_input(0)
        if limit.kind is not TripLimit.WHILE or source is None:
            continue
        read = next(_read_before_an_iteration(subject, limit.loop, source), None)
        if read is not None:
            what = f"the WHILE limit of {limit.loop.name!r} depends on {read.name!r}, {_an(read)}"
            yield Violation(limit, what, "carry the value through a recurrence of the loop, and read that")


def _read_before_an_iteration(subject: Subject, loop: ILoop, tensor: ITensor) -> Iterator[ILayer]:
    """The iterators and loop outputs that a tensor of a loop depends on within one iteration."""
    stack, seen = [tensor], {tensor}
    while stack:
        visited = stack.pop()
        layer = visited.producer
        if layer is None or isinstance(layer, IRecurrenceLayer) or not subject.scopes.varies_in(visited, loop):
            continue
        if isinstance(layer, IIteratorLayer | ILoopOutputLayer):
            yield layer
            continue
        fresh = [tensor for tensor in layer.type_inputs() if tensor is not None and tensor not in seen]
        stack += fresh
        seen.update(fresh)


def _an(layer: ILayer) -> str:
    return "an iterator" if isinstance(layer, IIteratorLayer) else "the output of a loop"


@rule("NL214", Severity.PORTABILITY)
def stacked_tensors_are_made_inside_the_loop(subject: Subject) -> Iterator[Violation]:
    """TensorRT's loop outputs take only tensors that are made inside the loop.

    A tensor that does not vary in the loop is outside it. Here its value is stacked, once for each iteration.

    Wrong: ``loop.add_loop_output(x, LoopOutput.CONCATENATE)`` with an ``x`` from outside
    Right: the same with ``loop.add_recurrence(x)``, whose next value is ``x`` again; or no loop output at all
    """
    for layer in subject.live(ILoopOutputLayer):
        tensor = layer.get_input(0)
        if not layer.stacks or tensor is None or subject.type(layer.outputs[0]) is None:
            continue
        if not subject.scopes.varies_in(tensor, layer.loop):
            loop = layer.loop.name
            what = f"the {layer.kind.name} output {layer.name!r} reads {tensor.name!r}, made outside {loop!r}"
            yield Violation(layer, what, f"pass {tensor.name!r} through a recurrence of {loop!r}")


@rule("NL215", Severity.PORTABILITY)
def output_is_as_long_as_the_count(subject: Subject) -> Iterator[Violation]:
    """TensorRT reports a length below the number of iterations as a run-time error.

    Here it is an error of the run only if something needs the elements; if runs may do so, the finding is NL221 or
    NL222. The rule applies where COUNT and length are known before the run, and no WHILE may end the loop earlier.

    Wrong: a length of 4 in a loop of 5 iterations, of an output that only an ``add_shape`` reads
    Right: a length of 5; elements past the last iteration are 0
    """
    for layer in subject.live(ILoopOutputLayer):
        count, length = _trip_count(subject, layer.loop), _known(subject, layer.get_input(1))
        if not layer.stacks or count is None or length is None or subject.fails(layer):
            continue
        if 0 <= length < count:
            yield Violation(layer, *too_short_for(count, layer, length))


@rule("NL216", Severity.PORTABILITY)
def axis_has_an_element_for_each_iteration(subject: Subject) -> Iterator[Violation]:
    """TensorRT leaves undefined what an iterator reads past the end of its axis.

    Here it is an error of the run only if something needs the element; if runs may do so, the finding is NL221 or
    NL222. The rule applies where the COUNT and the length of the axis are known before the run, and no WHILE may end
    the loop earlier.

    Wrong: an iterator along an axis of 3 elements in a loop of 4 iterations, where only the sum after the last needs
    all slices, and no output that sum
    Right: 3 iterations
    """
    for layer in subject.live(IIteratorLayer):
        count, tensor_type = _trip_count(subject, layer.loop), subject.type(layer.get_input(0))
        if count is None or tensor_type is None or subject.type(layer.outputs[0]) is None:
            continue
        length = tensor_type.shape[normal_axis(layer.axis, tensor_type.rank)]
        if length != UNKNOWN and length < count and not subject.fails(layer):
            yield Violation(layer, *past_the_end(count, layer, length))


def _trip_count(subject: Subject, loop: ILoop) -> int | None:
    """The number of iterations of a loop, if it is known before the network runs."""
    limit = loop.limit(TripLimit.COUNT)
    return None if limit is None or loop.limit(TripLimit.WHILE) else _known(subject, limit.get_input(0))


@rule("NL217", Severity.PORTABILITY)
def axes_of_a_loop_count_from_the_front(subject: Subject) -> Iterator[Violation]:
    """TensorRT does not document a negative axis of an iterator or loop output.

    Here it counts from the end; for a loop output, from the end of the stacked shape.

    Wrong: ``loop.add_iterator(x, axis=-1)``
    Right: ``loop.add_iterator(x, axis=len(x.shape) - 1)``
    """
    for layer in subject.live(ILoopBoundaryLayer):
        axis = _axis(layer)
        tensor_type = subject.type(layer.get_input(0))
        if axis >= 0 or tensor_type is None or subject.type(layer.outputs[0]) is None:
            continue
        rank = tensor_type.rank + isinstance(layer, ILoopOutputLayer)
        yield Violation(layer, f"the axis {axis} of {layer.name!r} is negative", f"write axis {axis + rank}")


def _axis(layer: ILoopBoundaryLayer) -> int:
    """The axis of a boundary layer; 0 where it has none, or does not use it."""
    if isinstance(layer, ILoopOutputLayer):
        return layer.axis if layer.kind is not LoopOutput.LAST_VALUE else 0
    return layer.axis if isinstance(layer, IIteratorLayer) else 0


@rule("NL218", Severity.PORTABILITY)
def recurrence_decides_no_shape(subject: Subject) -> Iterator[Violation]:
    """TensorRT does not allow a shape to depend on a recurrence.

    There, sizes, starts and lengths must follow from constants, shapes and inputs.

    Wrong: ``shuffle.set_input(1, recurrence.get_output(0))``
    Right: the same with a tensor from outside the loop
    """
    recurrences = list(subject.live(IRecurrenceLayer))
    deciding = subject.network.shape_tensors() if recurrences else frozenset[ITensor]()
    reported = {loop for loop in subject.network.loops if _has_a_length_from_inside(subject, loop)}
    for layer in recurrences:
        if layer.outputs[0] in deciding and layer.loop not in reported:
            yield Violation(layer, f"a shape depends on the value of the recurrence {layer.name!r}")


def _has_a_length_from_inside(subject: Subject, loop: ILoop) -> bool:
    """Whether NL208 reports the loop already."""
    lengths = [output.get_input(1) for output in loop.boundary(ILoopOutputLayer)]
    return any(tensor is not None and subject.scopes.varies_in(tensor, loop) for tensor in lengths)


@rule("NL219", Severity.PORTABILITY)
def count_is_not_negative(subject: Subject) -> Iterator[Violation]:
    """TensorRT does not document a negative COUNT.

    Here it means 0 iterations.

    Wrong: a COUNT of -1
    Right: a COUNT of 0
    """
    for layer in subject.live(ITripLimitLayer):
        count = _known(subject, layer.get_input(0))
        if count is not None and count < 0:
            yield Violation(layer, f"the COUNT limit of {layer.loop.name!r} is {count}", "give it 0")


# ---------------------------------------------------------------------------- conditionals


@rule("NL302", Severity.PORTABILITY)
def lazy_branches_have_inputs(subject: Subject) -> Iterator[Violation]:
    """TensorRT skips only the layers of a branch that depend on an input of the conditional.

    Without inputs both branches run: the result is the same, but it takes the time of both, and an error in the branch
    not taken is an error. Here a branch owns the layers that only it needs, with inputs or without.

    Wrong: ``conditional.add_output(slow(x), x)``
    Right: ``conditional.add_output(slow(inside), x)`` with ``inside = conditional.add_input(x).get_output(0)``
    """
    for conditional in subject.network.conditionals:
        if conditional.layers.of_kind(IIfConditionalInputLayer) or _decided(subject, conditional):
            continue
        lazy = next(_only_for_a_branch(subject, conditional), None)
        if lazy is not None:
            what = f"{conditional.name!r} has no input, so TensorRT runs both branches; {lazy.name!r} is in one of them"
            yield Violation(conditional, what, "pass the tensors that the branches read through add_input")


def _decided(subject: Subject, conditional: IIfConditional) -> bool:
    """Whether the branch is known before the network runs, or the condition has no type."""
    tensor_type = subject.type(conditional.condition)
    return tensor_type is None or tensor_type.value is not None


_NOTHING_TO_COMPUTE = (IConstantLayer, IRecurrenceLayer, IIteratorLayer)


def _only_for_a_branch(subject: Subject, conditional: IIfConditional) -> Iterator[ILayer]:
    """Layers that run in the scope of the conditional, and that only one of its branches needs."""
    outputs = dict.fromkeys(output for output in conditional.output_layers if output in subject.live_set)
    for output in outputs:
        for branch, tensor in enumerate(output.inputs):
            layer = None if tensor is None else tensor.producer
            if tensor is None or layer is None or isinstance(layer, _NOTHING_TO_COMPUTE):
                continue
            only_here = not tensor.is_network_output and all(
                (user in outputs and position == branch) or user not in subject.live_set
                for user, position in tensor.uses
            )
            if only_here and subject.scopes.are_equal(tensor, output):
                yield layer


@rule("NL303", Severity.PORTABILITY)
def tensors_leave_a_conditional_by_its_outputs(subject: Subject) -> Iterator[Violation]:
    """TensorRT lets tensors leave a conditional only through its outputs.

    An input of a conditional, and all that depends on it, is inside. Here the output of an input layer is the tensor
    itself, and can be used anywhere.

    Wrong: ``network.mark_output(conditional.add_input(x).get_output(0))``
    Right: ``network.mark_output(conditional.add_output(inside, other).get_output(0))``
    """
    with_inputs = [
        conditional
        for conditional in subject.network.conditionals
        if conditional.layers.of_kind(IIfConditionalInputLayer)
    ]
    insides = _insides(subject, {input_: 1 << number for number, input_ in enumerate(with_inputs)})
    escaping: list[tuple[int, ITensor]] = []
    for tensor in subject.network.outputs:
        mask = insides.get(tensor.producer, 0)
        while mask:
            escaping.append((mask.bit_length() - 1, tensor))
            mask ^= 1 << escaping[-1][0]
    for number, tensor in sorted(escaping, key=lambda entry: entry[0]):
        name = with_inputs[number].name
        what = f"the network output {tensor.name!r} comes from inside {name!r}, not through one of its outputs"
        fix = f"compute it from the tensors that {name!r} takes as inputs, or let it out with add_output"
        yield Violation(tensor.producer or tensor, what, fix)


def _insides(subject: Subject, bits: Mapping[IIfConditional, int]) -> Mapping[ILayer | None, int]:
    """The bits of the conditionals that each layer is inside of: their inputs reach it, not through their outputs."""
    inside: dict[ILayer | None, int] = {}
    # in the order of data flow, a layer mostly has all of its bits before its dependents are visited
    order = {node: number for number, node in enumerate(DataFlow(subject.scopes.live).order)} if bits else {}
    inside |= {input_layer: bits[input_layer.conditional] for input_layer in subject.live(IIfConditionalInputLayer)}
    queue: list[tuple[int, ILayer]] = [
        (order[input_layer], input_layer) for input_layer in subject.live(IIfConditionalInputLayer)
    ]
    heapq.heapify(queue)
    while queue:
        _, layer = heapq.heappop(queue)
        for dependent in _dependents(layer):
            closed = bits.get(dependent.conditional, 0) if isinstance(dependent, IIfConditionalOutputLayer) else 0
            fresh = inside[layer] & ~closed & ~inside.get(dependent, 0)
            if fresh and dependent in subject.live_set:
                inside[dependent] = inside.get(dependent, 0) | fresh
                heapq.heappush(queue, (order[dependent], dependent))
    return inside


def _dependents(layer: ILayer) -> Iterable[ILayer]:
    """The layers that directly depend on a layer; on a limit or condition, the outputs of its loop or conditional."""
    if isinstance(layer, ITripLimitLayer):
        return layer.loop.boundary(ILoopOutputLayer)
    if isinstance(layer, IConditionLayer):
        return layer.conditional.output_layers
    return [user for tensor in layer.outputs for user, _ in tensor.uses]


@rule("NL304", Severity.PORTABILITY)
def branches_have_one_element_type(subject: Subject) -> Iterator[Violation]:
    """TensorRT requires both branches of a conditional to have one element type, even if its condition is a constant.

    Here the type is that of the branch taken.

    Wrong: branches of float32 and int32
    Right: ``network.add_cast`` in one of them
    """
    for layer in subject.live(IIfConditionalOutputLayer):
        if subject.type(layer.outputs[0]) is None:
            continue
        first, second = (subject.type(tensor) for tensor in layer.inputs[:2])
        if first is not None and second is not None and first.dtype != second.dtype:
            what = f"the branches of {layer.conditional.name!r} give {first} and {second}"
            yield Violation(layer, what, "convert one of them with add_cast")


@rule("NL305", Severity.PORTABILITY)
def branches_have_one_rank(subject: Subject) -> Iterator[Violation]:
    """TensorRT requires both branches of a conditional to have one rank.

    Here an output of the network may have the rank of the branch taken.

    Wrong: branches of float32[2] and float32[2,1]
    Right: ``network.add_unsqueeze`` in one of them
    """
    for layer in subject.live(IIfConditionalOutputLayer):
        tensor_type = subject.type(layer.outputs[0])
        if isinstance(tensor_type, UnrankedType):
            fix = "give both branches the same number of axes, or fix the lengths that decide which one is taken"
            yield Violation(layer, f"the branches of {layer.conditional.name!r} give {tensor_type}", fix)


# ---------------------------------------------------------------------------- types


@rule("NL402", Severity.PORTABILITY)
def element_types_exist_in_tensorrt(subject: Subject) -> Iterator[Violation]:
    """TensorRT does not support this element type.

    It has no float64, no integers of 2 or 16 bits, no unsigned integers except uint8, no strings, and of the 8-bit
    floating-point types only E4M3FN and E8M0. The rule reports where such a type enters the network: inputs, constants
    and casts.

    Wrong: ``network.add_input("x", trt.float64, (3,))``
    Right: ``network.add_input("x", trt.float32, (3,))``
    """
    for tensor in subject.network.inputs:
        if tensor.declared is not None and not tensor.declared.is_tensor:
            yield Violation(
                tensor, f"the input {tensor.name!r} is {tensor.declared}", "declare an input for each tensor"
            )
        elif (type_ := _own(subject, tensor)) is not None:
            yield Violation(tensor, f"the input {tensor.name!r} is {tensor.declared}", _instead("declare it as", type_))
    for layer in subject.network.layers:
        tensor_type = next(filter(None, (_own(subject, tensor) for tensor in layer.outputs)), None)
        if tensor_type is not None and not any(_own(subject, tensor) for tensor in layer.type_inputs()):
            yield Violation(layer, f"{layer.name!r} makes {tensor_type}", _instead("make it", tensor_type))


# fmt: off
NEAREST = {
    DataType.DOUBLE:   "float32",
    DataType.INT16:    "int32",
    DataType.UINT16:   "int32",
    DataType.UINT32:   "int64",
    DataType.UINT64:   "int64",
    DataType.E5M2:     "float8_e4m3fn",
    DataType.E4M3FNUZ: "float8_e4m3fn",
    DataType.E5M2FNUZ: "float8_e4m3fn",
    DataType.INT2:     "int4",
    DataType.UINT2:    "int4",
    DataType.UINT4:    "int8",
}
# fmt: on
"""The nearest type that TensorRT has, for each that it lacks."""


def _instead(verb: str, type_: TensorType) -> str:
    """The fix for a type that TensorRT lacks; ``verb`` is "declare it as" or "make it"."""
    return "convert text outside of the network" if type_.is_string else f"{verb} {NEAREST[data_type(type_.dtype)]}"


def _own(subject: Subject, tensor: ITensor | None) -> TensorType | None:
    """The type of a tensor, if TensorRT lacks it."""
    tensor_type = subject.type(tensor)
    return tensor_type if tensor_type is not None and tensor_type.dtype in OWN else None


@rule("NL403", Severity.PORTABILITY)
def concatenation_has_at_most_10000_inputs(subject: Subject) -> Iterator[Violation]:
    """TensorRT concatenates at most 10,000 tensors.

    Wrong: a concatenation of 20,000 tensors
    Right: two of 10,000, and one of the two
    """
    for layer in subject.layers(IConcatenationLayer):
        if layer.num_inputs > MOST_CONCATENATED:
            yield Violation(layer, f"{layer.name!r} has {layer.num_inputs} inputs", "concatenate groups of them first")


@rule("NL404", Severity.PORTABILITY)
def layers_are_within_the_limits_of_tensorrt(subject: Subject) -> Iterator[Violation]:
    """TensorRT's layers accept fewer element types and settings than netloop's.

    Where the meaning is clear, netloop's layers accept all that they can compute: integers of any width, every axis,
    numbers beyond the limits of TensorRT's kernels. Some layers and operations are netloop's own.

    Wrong: ``network.add_matrix_multiply(a, NONE, b, NONE)`` with int32 tensors
    Right: the same with both cast to float32, if that is exact enough
    """
    for layer in subject.layers(Operation):
        if all(subject.type(tensor) is not None for tensor in layer.outputs):
            what = layer.beyond_tensorrt(*(subject.type(tensor) for tensor in layer.inputs))
            if what:
                yield Violation(layer, f"{layer.name!r} {what}", layer.within_tensorrt())


# ---------------------------------------------------------------------------- plugins


@rule("NL413", Severity.PORTABILITY)
def plugin_is_of_tensorrt(subject: Subject) -> Iterator[Violation]:
    """TensorRT cannot run JAX functions.

    Its plugins derive from IPluginV3, and work on device memory.

    Wrong: ``network.add_plugin_v3([x], [], netloop.JaxPlugin(jnp.sin))``
    Right: a plugin that derives from IPluginV3 and its three parts
    """
    for layer in subject.live(IPluginV3Layer):
        if isinstance(layer.plugin, JaxPlugin):
            yield Violation(
                layer, f"the plugin of {layer.name!r} is {layer.plugin!r}", "derive a plugin from IPluginV3"
            )
