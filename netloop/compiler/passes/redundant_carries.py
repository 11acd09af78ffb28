"""Eliminate recurrences that equal another one or never change."""

from collections.abc import Hashable, Mapping
from typing import TypeVar

import numpy as np

from netloop.compiler.passes.base import Pass
from netloop.compiler.passes.rewriter import Rewriter
from netloop.model.graph import ILayer, ITensor, Operation
from netloop.model.layers.assertion import IAssertionLayer
from netloop.model.layers.loop import IRecurrenceLayer
from netloop.model.layers.pointwise import IIdentityLayer
from netloop.model.nest import LayerStep, LoopStep, walk

L = TypeVar("L", bound=ILayer)

MOST_NUMBERED = 1 << 16
"""The number of states and layers that a search numbers before it gives up; a shift register needs a round for each."""


class RedundantCarries(Pass):
    """Replace constant recurrences by their initial values, and merge equal recurrences and equal iterators."""

    name = "redundant_carries"
    level = 1
    rule = (
        "Recurrences of a loop that are always equal become one, and so do equal iterators. A recurrence that never "
        "changes becomes its initial value, unless its loop draws random numbers or has assertions."
    )

    def rewrite(self, rewriter: Rewriter) -> bool:
        loops = list(rewriter.loops())
        unchanged = {step: [*filter(_never_changes, step.recurrences)] for step in loops}
        # looks at all layers inside, which in each loop of a nest would be quadratic
        constant = [recurrence for step, own in unchanged.items() if own and _may_move_out(step) for recurrence in own]
        for recurrence in constant:
            rewriter.replace(recurrence.outputs[0], recurrence.tensor(0))
            rewriter.note(f"the state {recurrence.outputs[0].name!r} never changes")
        merged = [_merge_equal(rewriter, step) for step in loops]
        return bool(constant) or any(merged)


def _may_move_out(step: LoopStep) -> bool:
    """Whether layers that no longer vary in a loop may be computed outside it.

    A layer that draws random numbers would draw them once, and an assertion would be checked even without an iteration.
    """
    layers = [node.layer for node in walk(step.body) if isinstance(node, LayerStep)]
    return all(
        layer.is_foldable if isinstance(layer, Operation) else not isinstance(layer, IAssertionLayer)
        for layer in layers
    )


def _never_changes(layer: IRecurrenceLayer) -> bool:
    """Whether the next value of a recurrence is its value."""
    following: ITensor | None = layer.tensor(1)
    while following is not None and isinstance(following.producer, IIdentityLayer):
        following = following.producer.inputs[0]
    return following is layer.outputs[0]


def _merge_equal(rewriter: Rewriter, step: LoopStep) -> bool:
    # those that never change are replaced already, or have to stay
    states = [recurrence for recurrence in step.recurrences if not _never_changes(recurrence)]
    groups = _ValueNumbering(step, states).groups
    iterators = {iterator: (iterator.tensor(0), iterator.axis, iterator.reverse) for iterator in step.iterators}
    merged = [_merge(rewriter, "states", groups), _merge(rewriter, "iterators", iterators)]
    return any(merged)


def _merge(rewriter: Rewriter, kind: str, layers: Mapping[L, Hashable]) -> bool:
    """Replace each layer by the first that has the same key."""
    representatives: dict[Hashable, L] = {}
    for layer, key in layers.items():
        first = representatives.setdefault(key, layer)
        if first is not layer:
            rewriter.replace(layer.outputs[0], first.outputs[0])
            rewriter.note(f"the {kind} {first.outputs[0].name!r} and {layer.outputs[0].name!r} are equal")
    return len(representatives) < len(layers)


class _ValueNumbering:
    """Equivalence classes of the recurrences of a loop, found by value numbering of its body.

    The search is optimistic: recurrences with equal initial values are taken for equal until their next values differ.
    A search that becomes too long finds none equal.
    """

    def __init__(self, step: LoopStep, states: list[IRecurrenceLayer]) -> None:
        self.step = step
        self.groups: dict[IRecurrenceLayer, int] = dict.fromkeys(states, 0)
        self._split({state: _identity(state.tensor(0)) for state in states})
        # each round numbers the whole body
        before, rounds = 0, MOST_NUMBERED // (1 + len(states) + len(step.body.steps))
        while len(set(self.groups.values())) > before:
            if rounds == 0:
                # a search that stops early has states in one group that may differ
                self.groups = {state: number for number, state in enumerate(states)}
                return
            before, rounds = len(set(self.groups.values())), rounds - 1
            numbers = self._number_tensors()
            self._split({state: numbers.get(state.tensor(1), state.tensor(1)) for state in states})

    def _split(self, by: dict[IRecurrenceLayer, Hashable]) -> None:
        numbers: dict[Hashable, int] = {}
        for layer, group in list(self.groups.items()):
            self.groups[layer] = numbers.setdefault((group, by[layer]), len(numbers))

    def _number_tensors(self) -> dict[ITensor, Hashable]:
        identities: dict[ITensor, Hashable] = {key.outputs[0]: ("state", group) for key, group in self.groups.items()}
        numbers: dict[Hashable, int] = {}
        for step in self.step.body.steps:
            layer = step.layer if isinstance(step, LayerStep) else None
            # two layers that draw random numbers differ even if they read the same
            if isinstance(layer, Operation) and layer.is_foldable:
                inputs = tuple(
                    None if tensor is None else identities.get(tensor) or _identity(tensor) for tensor in layer.inputs
                )
                attributes = tuple(_attribute_key(layer, name) for name in layer.ATTRIBUTES)
                number = numbers.setdefault((type(layer), attributes, inputs), len(numbers))
                identities.update({tensor: ("layer", number, tensor.position) for tensor in layer.outputs})
        return identities


def _attribute_key(layer: ILayer, name: str) -> Hashable:
    """The key of an attribute that two layers share only if theirs are equal; each layer's weights have their own."""
    value = getattr(layer, name)
    # the text of an array leaves out most of its elements
    return layer if isinstance(value, np.ndarray) else repr(value)


def _identity(tensor: ITensor) -> Hashable:
    """The key that two tensors share only if they are equal: type and value if known, otherwise the tensor."""
    value = tensor.type.value if tensor.type.is_known_integer else None
    # equal integers may be constants of several layers
    return tensor if value is None else (str(tensor.type), value.tobytes())
