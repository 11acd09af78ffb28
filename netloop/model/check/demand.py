"""Static analysis of elements that every run computes, and the errors in them."""

from collections.abc import Iterable, Iterator

from netloop.model.graph import ILayer, ITensor, Operation, TypeTable
from netloop.model.layers.assertion import IAssertionLayer
from netloop.model.layers.conditional import IIfConditionalInputLayer, IIfConditionalOutputLayer
from netloop.model.layers.loop import IIteratorLayer, ILoop, ILoopOutputLayer, IRecurrenceLayer
from netloop.model.layers.sources import IConstantLayer, IShapeLayer
from netloop.model.nest import Scopes, layers_before
from netloop.model.network import INetworkDefinition
from netloop.values.enums import TripLimit
from netloop.values.types import UNKNOWN, TensorType, normal_axis

At = dict[ILoop, int | None]
"""The iteration of each enclosing loop; None for one that is not known."""
Need = tuple[ITensor | None, At]
"""A tensor, and the iterations in which it is needed."""

Failure = tuple[str, str]
"""The fault, and its fix."""

MOST_ELEMENTS = 4
"""The number of elements of a tensor that are followed: of a chain of recurrences, those of the last iterations."""


class Demand:
    """The elements that the outputs of a network need, found as the reference finds them, but without values.

    Of a loop with a known trip count, the first and the last iteration are followed, because a slice past the end of an
    axis is in one of them.

    Attributes:
        failures: the loop outputs and iterators that fail there.
    """

    def __init__(self, network: INetworkDefinition, scopes: Scopes, is_likely: bool = False) -> None:
        """Follow what is needed for certain; with ``is_likely`` also both branches of conditionals, the conditions of
        assertions, and loops that a WHILE may end earlier.
        """
        self.failures: dict[ILayer, Failure] = {}
        self._scopes = scopes
        self._types = network.types
        self._is_likely = is_likely
        conditions = (tensor for layer in scopes.live if isinstance(layer, IAssertionLayer) for tensor in layer.inputs)
        self._follow([*network.outputs, *(conditions if is_likely else ())])

    def _follow(self, tensors: Iterable[ITensor | None]) -> None:
        stack: list[Need] = [(tensor, {}) for tensor in tensors]
        followed: dict[ITensor, set[tuple[int | None, ...]]] = {}
        while stack:
            tensor, at = stack.pop()
            layer = None if tensor is None else tensor.producer
            if tensor is None or layer is None or not isinstance(self._types.of(tensor), TensorType):
                continue
            if not self._scopes.is_chain(tensor):  # its loops are not nested, which is an error of its own
                continue
            seen = followed.setdefault(tensor, set())
            key = tuple(at.get(loop) for loop in self._scopes.chain_of(tensor))
            if key not in seen and len(seen) < MOST_ELEMENTS:
                seen.add(key)
                stack.extend(self._needs(layer, at))

    def _needs(self, layer: ILayer, at: At) -> Iterable[Need]:
        """The elements that an element of the outputs of a layer needs."""
        if isinstance(layer, ILoopOutputLayer):
            return self._of_output(layer, at)
        if isinstance(layer, IIteratorLayer):
            return self._of_iterator(layer, at)
        if isinstance(layer, IRecurrenceLayer):
            return self._of_recurrence(layer, at)
        if isinstance(layer, IIfConditionalOutputLayer):
            return self._of_conditional(layer, at)
        # a shape may be known without the tensor
        if not isinstance(layer, Operation | IIfConditionalInputLayer) or isinstance(layer, IShapeLayer):
            return ()
        return ((tensor, at) for tensor in layer.inputs)

    def _of_output(self, layer: ILoopOutputLayer, at: At) -> Iterator[Need]:
        loop = layer.loop
        yield from self._of_limits(loop, at)
        trips = self._trips(loop)
        if not layer.stacks:
            yield layer.get_input(0), {**at, loop: trips}
            return
        yield layer.get_input(1), at
        length = known_integer(layer.get_input(1), self._types)
        impossible = None if length is None else layer.known_error(self._types)
        if impossible is not None:
            self.failures[layer] = impossible[0], impossible[2]
        elif length is not None and trips is not None and trips > length:
            self.failures[layer] = too_short_for(trips, layer, length)
        elif trips or (trips is None and self._is_likely):
            yield layer.get_input(0), {**at, loop: None if trips is None else trips - 1}
            yield layer.get_input(0), {**at, loop: None if trips is None else 0}

    def _of_limits(self, loop: ILoop, at: At) -> Iterator[Need]:
        count, goes_on = loop.limit(TripLimit.COUNT), loop.limit(TripLimit.WHILE)
        if count is not None:
            yield count.get_input(0), at
        if goes_on is not None and (count is None or self._is_likely or known_count(loop, self._types)):
            yield goes_on.get_input(0), {**at, loop: 0}

    def _of_iterator(self, layer: IIteratorLayer, at: At) -> Iterator[Need]:
        source, trip, count = layer.get_input(0), at.get(layer.loop), known_count(layer.loop, self._types)
        yield source, at
        if trip is None or source is None or (layer.reverse and count is None):
            return
        position = trip if not layer.reverse or count is None else count - 1 - trip
        shape = self._types[source].shape
        length = shape[normal_axis(layer.axis, len(shape))]
        if length != UNKNOWN and not 0 <= position < length:
            self.failures[layer] = past_the_end(count, layer, length)

    def _of_recurrence(self, layer: IRecurrenceLayer, at: At) -> Iterator[Need]:
        trip = at.get(layer.loop)
        if trip == 0 or (trip is None and self._is_likely):
            yield layer.get_input(0), at
        if trip != 0 and (trip is not None or self._is_likely):
            yield layer.get_input(1), {**at, layer.loop: None if trip is None else trip - 1}

    def _of_conditional(self, layer: IIfConditionalOutputLayer, at: At) -> Iterator[Need]:
        condition = layer.conditional.condition
        yield condition, at
        taken = known_integer(condition, self._types)
        if taken is not None:
            yield layer.get_input(0 if taken else 1), at
        elif self._is_likely:
            yield from ((tensor, at) for tensor in layer.inputs)

    def _trips(self, loop: ILoop) -> int | None:
        """The number of iterations if it is known: a WHILE may end the loop before its COUNT."""
        return known_count(loop, self._types) if self._is_likely or loop.limit(TripLimit.WHILE) is None else None


def too_short_for(trips: int, layer: ILoopOutputLayer, length: int) -> Failure:
    """The failure of a stacked output whose length is less than the trip count."""
    what = (
        f"{layer.name!r} has room for {length} elements, and {layer.loop.name!r} {_runs(layer.loop)} {trips} iterations"
    )
    return what, f"give it a length of {trips}"


def past_the_end(count: int | None, layer: IIteratorLayer, length: int) -> Failure:
    """The failure of an iterator that reads past the end of its axis, also if only LAST_VALUE does so."""
    loop = layer.loop
    if count is None or count <= length:
        return f"{layer.name!r} is read past the end of its axis of {length} elements, after the last iteration", ""
    what = (
        f"{layer.name!r} iterates over an axis of {length} elements, and {loop.name!r} {_runs(loop)} {count} iterations"
    )
    return what, f"limit {loop.name!r} to {length} iterations"


def _runs(loop: ILoop) -> str:
    return "runs" if loop.limit(TripLimit.WHILE) is None else "may run"


def known_count(loop: ILoop, types: TypeTable) -> int | None:
    """The COUNT of a loop, as ``known_integer``; 0 if it is negative."""
    limit = loop.limit(TripLimit.COUNT)
    count = known_integer(None if limit is None else limit.get_input(0), types)
    return None if count is None else max(0, count)


def known_integer(tensor: ITensor | None, types: TypeTable) -> int | None:
    """The value of an integer or bool scalar that follows from shapes and integers only, so not from weights."""
    type_ = None if tensor is None else types.of(tensor)
    if tensor is None or not isinstance(type_, TensorType) or type_.rank or not type_.is_known_integer:
        return None
    return (type_.ints() or [0])[0] if _is_free_of_weights(tensor, types) else None


def never_holds(layer: IAssertionLayer, types: TypeTable) -> bool:
    """Whether an element of the condition of an assertion is false by shapes and integers only, so not by weights."""
    condition, type_ = layer.get_input(0), types.of(layer.get_input(0))
    if condition is None or not isinstance(type_, TensorType) or not type_.is_bool:
        return False
    elements = type_.elements()
    is_false = elements is not None and not elements.compressed().all()
    return is_false and _is_free_of_weights(condition, types)


def is_always_checked(layer: IAssertionLayer, scopes: Scopes) -> bool:
    """Whether every run comes to an assertion: it is in no loop, and depends on nothing that a branch may own."""
    condition = layer.get_input(0)
    if condition is None or scopes.chain_of(condition):
        return False
    choices = (choice for choice in scopes.live if isinstance(choice, IIfConditionalOutputLayer))
    of_branches = layers_before(tensor.producer for choice in choices for tensor in choice.inputs if tensor is not None)
    return layers_before([layer]).isdisjoint(of_branches)


def does_not_hold(layer: IAssertionLayer) -> Failure:
    """The failure of an assertion that never holds."""
    return f"the assertion {layer.name!r} never holds: {layer.message}", "change its condition, or what it follows from"


def _is_free_of_weights(tensor: ITensor, types: TypeTable) -> bool:
    """Whether a known value follows from shapes and integers only."""
    producers = (before.producer for before in _tensors_before(tensor))
    constants = (layer for layer in producers if isinstance(layer, IConstantLayer))
    return all(types[constant.outputs[0]].is_known_integer for constant in constants)


def _tensors_before(tensor: ITensor) -> Iterator[ITensor]:
    """A tensor and those that its value follows from; of a shape, none."""
    stack, seen = [tensor], {tensor}
    while stack:
        yield (last := stack.pop())
        layer = last.producer
        if layer is None or isinstance(layer, IShapeLayer):
            continue
        fresh = [tensor for tensor in layer.type_inputs() if tensor is not None and tensor not in seen]
        stack += fresh
        seen.update(fresh)


def may_fail(types: TypeTable, scopes: Scopes) -> bool:
    """Whether a live loop output or iterator fails if it is needed: most networks have none, which is quickly seen."""
    layers = [layer for layer in scopes.live if isinstance(layer, ILoopOutputLayer | IIteratorLayer)]
    typed = [output for output in layers if isinstance(types.of(output.outputs[0]), TensorType)]
    return any(_is_too_short(output, types) or _is_last_of_no_recurrence(output) for output in typed)


def _is_too_short(layer: ILoopOutputLayer | IIteratorLayer, types: TypeTable) -> bool:
    """Whether a length is impossible, or it or the axis of an iterator is less than the COUNT of the loop."""
    count = known_count(layer.loop, types)
    if isinstance(layer, ILoopOutputLayer):
        length = known_integer(layer.get_input(1), types) if layer.stacks else None
        return length is not None and (layer.known_error(types) is not None or (count is not None and count > length))
    shape = types[layer.tensor(0)].shape
    return count is not None and 0 <= shape[normal_axis(layer.axis, len(shape))] < count


def _is_last_of_no_recurrence(layer: ILayer) -> bool:
    """Whether a layer is a LAST_VALUE of a tensor that is no recurrence, so that it may read past an iterator's end."""
    if not isinstance(layer, ILoopOutputLayer) or layer.stacks:
        return False
    return not isinstance(layer.tensor(0).producer, IRecurrenceLayer)
