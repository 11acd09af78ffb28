"""Rules about loops: limits, recurrences, iterators, outputs, and how loops nest."""

from collections.abc import Iterator

from netloop.model.check.escapes import Escape, Escapes
from netloop.model.check.rule import Subject, Violation, rule
from netloop.model.graph import ILayer, ITensor
from netloop.model.layers.loop import IIteratorLayer, ILoop, ILoopOutputLayer, IRecurrenceLayer, ITripLimitLayer
from netloop.values.diagnostics import Severity
from netloop.values.enums import LoopOutput, TripLimit
from netloop.values.types import TensorType, agree, join


@rule("NL201")
def loop_has_a_limit(subject: Subject) -> Iterator[Violation]:
    """a loop ends when its COUNT is reached or its WHILE is false; without either it never ends.

    Wrong: a loop without ``add_trip_limit``
    Right: ``loop.add_trip_limit(count, TripLimit.COUNT)``
    """
    for loop in subject.network.loops:
        if loop.layers and not loop.boundary(ITripLimitLayer):
            fix = "call add_trip_limit(tensor, TripLimit.COUNT) or (tensor, TripLimit.WHILE) on the loop"
            yield Violation(loop, f"{loop.name!r} has no trip limit", fix)


@rule("NL202")
def loop_has_one_limit_of_a_kind(subject: Subject) -> Iterator[Violation]:
    """a loop has at most one COUNT limit and one WHILE limit.

    Wrong: two COUNT limits on one loop
    Right: one COUNT limit, the smaller of the two
    """
    for loop in subject.network.loops:
        for kind in TripLimit:
            limits = [limit for limit in loop.boundary(ITripLimitLayer) if limit.kind is kind]
            for second in limits[1:]:
                fix = f"combine them into one tensor; the first is {limits[0].name!r}"
                yield Violation(second, f"{loop.name!r} has a second {kind.name} limit, {second.name!r}", fix)


@rule("NL203")
def recurrence_has_a_next_value(subject: Subject) -> Iterator[Violation]:
    """a recurrence is X, Y0, Y1, ...: input 0 is its initial value X, and input 1 its next value Y.

    Wrong: ``loop.add_recurrence(x)`` without a next value
    Right: ``recurrence.set_input(1, y)`` after it
    """
    for layer in subject.layers(IRecurrenceLayer):
        if layer.get_input(1) is None:
            fix = "call set_input(1, tensor) on the layer, with the value for the next iteration"
            yield Violation(layer, f"{layer.name!r} has no next value", fix)


@rule("NL204", Severity.PORTABILITY)
def last_value_is_of_a_recurrence(subject: Subject) -> Iterator[Violation]:
    """TensorRT supports LAST_VALUE only for recurrences.

    In a loop of n iterations, every tensor is a sequence X0 ... Xn-1. LAST_VALUE is Xn, one past the last iteration. A
    recurrence has that element; for any other tensor netloop computes it, and TensorRT refuses to.

    Wrong: ``loop.add_loop_output(total.get_output(0), LoopOutput.LAST_VALUE)``
    Right: ``loop.add_loop_output(running.get_output(0), LoopOutput.LAST_VALUE)``
    """
    for layer in subject.layers(ILoopOutputLayer):
        tensor = layer.inputs[0]
        if layer.kind is not LoopOutput.LAST_VALUE or tensor is None:
            continue
        if isinstance(tensor.producer, IRecurrenceLayer) and tensor.producer.loop is layer.loop:
            continue
        fed = _fed(tensor, layer.loop)
        loop = layer.loop.name
        what = f"the LAST_VALUE output {layer.name!r} reads {tensor.name!r}, which is not a recurrence of {loop!r}"
        yield Violation(layer, what, f"read the recurrence that it feeds, {fed[0].name!r}" if fed else "")


def _fed(tensor: ITensor, loop: ILoop) -> list[IRecurrenceLayer]:
    """The recurrences of a loop that take a tensor as their next value."""
    readers = [layer for layer, position in tensor.uses if isinstance(layer, IRecurrenceLayer) and position == 1]
    return sorted((reader for reader in readers if reader.loop is loop), key=lambda reader: reader.index)


@rule("NL205")
def recurrence_keeps_its_type(subject: Subject) -> Iterator[Violation]:
    """the value of a recurrence has the same element type and shape in all iterations.

    With ``keeps_shape`` set to False its dims may change, but not its rank.

    Wrong: a state that grows by concatenation
    Right: a buffer of fixed length and a scatter into it, or a CONCATENATE output
    """
    for layer in subject.layers(IRecurrenceLayer):
        first, second = (subject.type(layer.get_input(position)) for position in (0, 1))
        if first is None or second is None:
            continue
        if first.dtype != second.dtype:
            fix = "convert one of them with add_cast"
        elif not first.is_tensor and join(first, second) is not None:
            fix = "set keeps_shape to False, since its contents change"
        else:
            fix = "keep the shape: collect values with a CONCATENATE output, or write into a buffer with add_scatter"
        if not _follows(first, second, layer.keeps_shape):
            yield Violation(layer, f"{layer.name!r} starts as {first}, and its next value is {second}", fix)


def _follows(first: TensorType, second: TensorType, keeps_shape: bool) -> bool:
    """Whether a recurrence of the first type may have a next value of the second."""
    either = join(first, second)
    if either is None or not keeps_shape:
        return either is not None
    return agree(first.shape, second.shape) if either.is_tensor else either == first


@rule("NL220", Severity.PORTABILITY)
def recurrence_keeps_its_dims(subject: Subject) -> Iterator[Violation]:
    """TensorRT requires the dims of a recurrence to stay the same.

    Wrong: ``recurrence.keeps_shape = False`` and a state that grows by concatenation
    Right: a buffer of fixed length and a scatter into it, or a CONCATENATE output
    """
    for layer in subject.layers(IRecurrenceLayer):
        first, tensor_type = subject.type(layer.get_input(0)), subject.type(layer.outputs[0])
        if first is not None and tensor_type is not None and first.shape != tensor_type.shape:
            what = f"the dims of {layer.name!r} change between iterations: it starts as {first}"
            fix = "for TensorRT, write into a buffer with add_scatter, or collect values with a CONCATENATE output"
            yield Violation(layer, what, fix)


@rule("NL208")
def initial_values_are_made_outside_the_loop(subject: Subject) -> Iterator[Violation]:
    """initial values, iterated tensors, counts and lengths are needed before a loop starts, so it cannot make them.

    Wrong: ``loop.add_iterator(recurrence.get_output(0))``
    Right: ``loop.add_iterator(x)`` with an ``x`` from outside
    """
    for loop in subject.network.loops:
        for layer in loop.layers:
            for position, role in _from_outside(layer).items():
                tensor = layer.get_input(position)
                if tensor is None or not subject.scopes.varies_in(tensor, loop):
                    continue
                if not subject.scopes.is_entangled(tensor):
                    what = f"{role} of {layer.name!r}, {tensor.name!r}, is made inside {loop.name!r} itself"
                    fix = "use a tensor from outside the loop, or one of its loop outputs in another loop"
                    yield Violation(layer, what, fix)


def _from_outside(layer: ILayer) -> dict[int, str]:
    """The inputs of a boundary layer that must come from outside its loop."""
    if isinstance(layer, IRecurrenceLayer):
        return {0: "the initial value"}
    if isinstance(layer, IIteratorLayer):
        return {0: "the input"}
    if isinstance(layer, ILoopOutputLayer):
        return {1: "the length"}
    return {0: "the count"} if isinstance(layer, ITripLimitLayer) and layer.kind is TripLimit.COUNT else {}


@rule("NL209")
def loops_nest_cleanly(subject: Subject) -> Iterator[Violation]:
    """if two loops share tensors, exactly one of them is inside the other.

    Wrong: a loop L whose recurrence takes its next value from inside M, where M iterates over something inside L
    Right: let the value out of M with a loop output, and use that
    """
    reported: set[ILoop] = set()
    # a loop around one of two entangled loops may be in another pair
    for first, second in sorted(_entangled(subject), key=lambda pair: -sum(map(subject.scopes.depth, pair))):
        if reported.isdisjoint((first, second)):
            one, other = _tensor_from_inside(subject, first, second), _tensor_from_inside(subject, second, first)
            what = (
                f"{first.name!r} and {second.name!r} are each inside the other: {second.name!r} uses {one!r} from "
                f"inside {first.name!r}, and {first.name!r} uses {other!r} from inside {second.name!r}"
            )
            yield Violation(second, what, f"let {other!r} out of {second.name!r} with add_loop_output")
        reported |= {first, second}


def _entangled(subject: Subject) -> list[tuple[ILoop, ILoop]]:
    """The entangled pairs, in the order in which the loops were added."""
    numbers = {loop: number for number, loop in enumerate(subject.network.loops)}
    pairs = [sorted(pair, key=numbers.__getitem__) for pair in subject.scopes.entangled]
    return sorted(((first, second) for first, second in pairs), key=lambda pair: [numbers[loop] for loop in pair])


def _tensor_from_inside(subject: Subject, outer: ILoop, inner: ILoop) -> str:
    """The name of a tensor that varies in ``outer`` and is read by the boundary of ``inner``."""
    tensors = (tensor for layer in inner.layers for tensor in layer.inputs if tensor is not None)
    return next(tensor.name for tensor in tensors if subject.scopes.varies_in(tensor, outer))


@rule("NL210")
def outputs_are_outside_all_loops(subject: Subject) -> Iterator[Violation]:
    """inside a loop a tensor is a sequence, one value per iteration; only a loop output lets values out.

    Wrong: ``network.mark_output(recurrence.get_output(0))``
    Right: ``network.mark_output(loop.add_loop_output(recurrence.get_output(0), LAST_VALUE).get_output(0))``
    """
    escapes = Escapes(subject.scopes)
    for tensor in subject.network.outputs:
        loop = subject.scopes.innermost(tensor) if subject.scopes.is_chain(tensor) else None
        if loop is not None:
            yield _escaping(tensor, loop, escapes.of(tensor, loop))


def _escaping(output: ITensor, loop: ILoop, escape: Escape) -> Violation:
    what = f"the network output {output.name!r} varies in {loop.name!r}:"
    name, reader, through = repr(escape.tensor.name), escape.reader, escape.through
    if reader is None:
        fix = f"let it out of {loop.name!r} with {_let_out(escape.tensor, loop)}, and mark that output"
        return Violation(output.producer or output, f"{what} it escapes the loop", fix)
    if through is None:
        fix = f"let {name} out of {loop.name!r} with {_let_out(escape.tensor, loop)}, and read that output instead"
        return Violation(reader, f"{what} {reader.name!r} reads {_shown(escape.tensor)}, which escapes the loop", fix)
    why = f"it comes out of {through.name!r}, which is inside {loop.name!r} because {reader.name!r} reads"
    fix = (
        f"if {through.name!r} comes after {loop.name!r}, let {name} out of {loop.name!r} with "
        f"{_let_out(escape.tensor, loop)}, and read that output in {through.name!r}; "
        f"if it belongs inside, let {output.name!r} out of {loop.name!r} as well, and mark that output"
    )
    return Violation(reader, f"{what} {why} {_shown(escape.tensor)}", fix)


def _shown(tensor: ITensor) -> str:
    """The name of a tensor; with the line that made it, if it has no name of its own."""
    location = tensor.producer.source_location if tensor.producer is not None else None
    is_unnamed = tensor.name.startswith("(Unnamed Layer* ")
    return f"{tensor.name!r} of {location}" if is_unnamed and location is not None else repr(tensor.name)


def _let_out(tensor: ITensor, loop: ILoop) -> str:
    """The call that lets a tensor out of a loop."""
    if isinstance(tensor.producer, IRecurrenceLayer) and tensor.producer.loop is loop:
        return "add_loop_output(tensor, LoopOutput.LAST_VALUE)"
    if fed := _fed(tensor, loop):
        return f"add_loop_output(tensor, LoopOutput.LAST_VALUE) of the recurrence that it feeds, {fed[0].name!r}"
    return "add_loop_output(tensor, LoopOutput.CONCATENATE), with a length as input 1"


@rule("NL211")
def tensor_varies_in_nested_loops(subject: Subject) -> Iterator[Violation]:
    """a tensor varies in one loop and those around it; two separate loops have no iterations in common.

    Wrong: ``network.add_elementwise(tensor_of_loop_1, tensor_of_loop_2, SUM)``
    Right: let one of them out with a loop output first
    """
    for layer in subject.network.layers:
        if subject.scopes.is_chain(layer) or subject.scopes.is_entangled(layer):
            continue
        inputs = [tensor for tensor in layer.inputs if tensor is not None]
        if all(map(subject.scopes.is_chain, inputs)):
            yield _mixed(subject, layer, inputs)


def _mixed(subject: Subject, layer: ILayer, inputs: list[ITensor]) -> Violation:
    shown = [
        f"{tensor.name!r} varies in {loop.name!r}"
        for tensor in inputs
        if (loop := subject.scopes.innermost(tensor)) is not None
    ]
    what = f"{layer.name!r} mixes loops that are not nested" + (": " + " and ".join(shown) if shown else "")
    varying = [tensor for tensor in inputs if subject.scopes.innermost(tensor) is not None]
    fix = "let one of the tensors out of its loop with add_loop_output"
    if len(varying) > 1:
        first, loop = varying[0], subject.scopes.innermost(varying[0])
        assert loop is not None
        fix = f"let one of them out of its loop, such as {first.name!r} with {_let_out(first, loop)}"
        fix += f" on {loop.name!r}, and read that output instead"
    return Violation(layer, what, fix)


@rule("NL212")
def reverse_iterator_has_a_count(subject: Subject) -> Iterator[Violation]:
    """a reverse iterator starts at the last element that the COUNT limit reaches, so its loop needs a COUNT limit.

    Wrong: ``loop.add_iterator(x, 0, reverse=True)`` in a loop with only a WHILE limit
    Right: a COUNT limit too, of the length of the axis
    """
    for layer in subject.layers(IIteratorLayer):
        if layer.reverse and layer.loop.limit(TripLimit.COUNT) is None:
            what = f"{layer.name!r} is a reverse iterator, and {layer.loop.name!r} has no COUNT limit to start from"
            yield Violation(layer, what, f"give {layer.loop.name!r} one with add_trip_limit(length, TripLimit.COUNT)")
