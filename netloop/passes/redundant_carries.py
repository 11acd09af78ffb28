"""States of a loop that need not be carried."""

from __future__ import annotations

from collections.abc import Hashable

from netloop.graph.layer import ILayer, Operation
from netloop.graph.tensor import ITensor
from netloop.layers.assertion import IAssertionLayer
from netloop.layers.loop import IIteratorLayer, IRecurrenceLayer
from netloop.layers.pointwise import IIdentityLayer
from netloop.nest import LayerStep, LoopStep, walk
from netloop.passes.rewriter import Rewriter


def merge_states(rewriter: Rewriter) -> None:
    """Carry no state that stays what it is, and no two that are always equal; read no tensor twice by iterators."""
    for step in list(rewriter.loops()):
        for layer in step.recurrences if _may_be_left(step) else ():
            if _stays(layer):
                rewriter.replace(layer.outputs[0], layer.tensor(0))
                rewriter.note(f"the state {layer.outputs[0].name!r} is what it was")
    for step in list(rewriter.loops()):
        _merge_equal(rewriter, step)


def _may_be_left(step: LoopStep) -> bool:
    """Whether what no longer varies in a loop may be computed outside of it: a layer that draws random numbers would
    draw them once, and an assertion would be checked without a trip.
    """
    layers = (each.layer for each in walk(step.body) if isinstance(each, LayerStep))
    return all(_computes_alone(each) for each in layers)


def _computes_alone(layer: ILayer) -> bool:
    if isinstance(layer, Operation):
        return layer.is_foldable
    return not isinstance(layer, IAssertionLayer)


def _stays(layer: IRecurrenceLayer) -> bool:
    """Whether the next value of a recurrence is its value."""
    following: ITensor | None = layer.tensor(1)
    while following is not None and isinstance(following.producer, IIdentityLayer):
        following = following.producer.inputs[0]
    return following is layer.outputs[0]


def _merge_equal(rewriter: Rewriter, step: LoopStep) -> None:
    states = [each for each in step.recurrences if not _stays(each)]
    groups = _Numbers(step, states).groups
    iterators: dict[Hashable, IIteratorLayer] = {}
    for layer in states:
        first = next(each for each in states if groups[each] == groups[layer])
        if first is not layer:
            rewriter.replace(layer.outputs[0], first.outputs[0])
            rewriter.note(f"the states {first.outputs[0].name!r} and {layer.outputs[0].name!r} are equal")
    for layer in step.iterators:
        first = iterators.setdefault((layer.tensor(0), layer.axis, layer.reverse), layer)
        if first is not layer:
            rewriter.replace(layer.outputs[0], first.outputs[0])
            rewriter.note(f"the iterators {first.name!r} and {layer.name!r} are equal")


class _Numbers:
    """Numbers of what is computed in a trip: two tensors of one number are equal.

    States that begin alike are taken to be equal until their next values turn out to differ.
    """

    def __init__(self, step: LoopStep, states: list[IRecurrenceLayer]) -> None:
        self.step = step
        self.groups: dict[IRecurrenceLayer, int] = dict.fromkeys(states, 0)
        self._split({each: _identity(each.tensor(0)) for each in states})
        before = 0
        while len(set(self.groups.values())) > before:
            before = len(set(self.groups.values()))
            numbers = self._of_tensors()
            self._split({each: numbers.get(each.tensor(1), each.tensor(1)) for each in states})

    def _split(self, by: dict[IRecurrenceLayer, Hashable]) -> None:
        numbers: dict[Hashable, int] = {}
        for layer, group in list(self.groups.items()):
            self.groups[layer] = numbers.setdefault((group, by[layer]), len(numbers))

    def _of_tensors(self) -> dict[ITensor, Hashable]:
        found: dict[ITensor, Hashable] = {each.outputs[0]: ("state", group) for each, group in self.groups.items()}
        known: dict[Hashable, int] = {}
        for step in self.step.body.steps:
            layer = step.layer if isinstance(step, LayerStep) else None
            if isinstance(layer, Operation) and layer.is_foldable:
                inputs = tuple(None if each is None else found.get(each) or _identity(each) for each in layer.inputs)
                number = known.setdefault((type(layer), _attributes(layer), inputs), len(known))
                found.update({each: ("layer", number, each.position) for each in layer.outputs})
        return found


def _identity(tensor: ITensor) -> Hashable:
    """What is the same of tensors that are surely equal: their type and value if that is known, or themselves."""
    value = tensor.type.value if tensor.type.is_known_integer else None
    return tensor if value is None else (str(tensor.type), value.tobytes())


def _attributes(layer: ILayer) -> Hashable:
    return tuple(repr(getattr(layer, name)) for name in layer.ATTRIBUTES)
