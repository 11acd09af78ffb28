"""Values whose rank depends on the branch that an If takes.

A tensor of a network has one rank, so each result of such an If is kept as two tensors, and each node that reads one is
imported for both branches. Once no value that is still needed has two ranks, all of them become outputs of one
conditional.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from netloop.formats.shared.import_errors import Unimported
from netloop.model.graph.call_site import call_site, importing
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.conditional import IIfConditional
from netloop.model.network import INetworkDefinition


class Split:
    """An If whose results have two ranks; its conditional, named ``name``, is added with the first output.

    Attributes:
        condition: the condition, a bool scalar.
    """

    def __init__(self, network: INetworkDefinition, condition: ITensor, name: str) -> None:
        self.condition = condition
        self._network = network
        self._name = name
        self._location = call_site()
        self._conditional: IIfConditional | None = None

    def output(self, true: ITensor, false: ITensor) -> ITensor:
        """An output of the conditional."""
        with importing(self._location):
            if self._conditional is None:
                self._conditional = self._network.add_if_conditional()
                self._conditional.name = self._name
                self._conditional.set_condition(self.condition)
            return true if true is false else self._conditional.add_output(true, false).outputs[0]


@dataclass(frozen=True)
class Alternatives:
    """A value in each branch of an If: if its condition is true, and if it is false."""

    split: Split
    branches: tuple[Value, Value]


H = TypeVar("H", bound=Hashable)

Value = ITensor | Alternatives | Unimported | None
"""The value of a name; None for an input that the call of a function leaves out."""


def if_outputs(split: Split, true: Sequence[Value], false: Sequence[Value]) -> list[Value]:
    """The outputs of an If: tensors, or alternatives if one of them has two ranks."""
    values = [Alternatives(split, pair) for pair in zip(true, false, strict=True)]
    return [*values] if any(map(_has_two_ranks, values)) else [merged(alternatives) for alternatives in values]


def merged(value: Value) -> Value:
    """A value as one tensor, if it is alternatives."""
    if not isinstance(value, Alternatives):
        return value
    true, false = map(merged, value.branches)
    if not isinstance(true, ITensor) or not isinstance(false, ITensor):
        return true
    return value.split.output(true, false)


def merge_finished(values: dict[H, Value], needed: Mapping[H, int], position: int) -> None:
    """Merge the alternatives among the values of a graph after the node at a position, where they all can be merged.

    ``needed`` has the position of the last node that reads each value.
    """
    live = {name: value for name, value in values.items() if needed.get(name, -1) > position}
    splits = {value.split: None for value in live.values() if isinstance(value, Alternatives)}
    for split in splits:
        group = {
            name: value for name, value in live.items() if isinstance(value, Alternatives) and value.split is split
        }
        if not any(
            _has_two_ranks(alternatives) or _is_known_to_differ(alternatives) for alternatives in group.values()
        ):
            values.update({name: merged(alternatives) for name, alternatives in group.items()})


def _has_two_ranks(value: Alternatives) -> bool:
    leaves = _leaves(value)
    types = [leaf.type for leaf in leaves]
    return (
        all(type_.is_tensor and type_.dtype == types[0].dtype for type_ in types) and len({t.rank for t in types}) > 1
    )


def _is_known_to_differ(value: Alternatives) -> bool:
    """Whether a value is known integers that differ by the branch: what ranks are compared with, or axes."""
    types = [tensor.type for tensor in _leaves(value)]
    values = [type_.value for type_ in types if type_.is_known_integer and type_.value is not None]
    return len(values) == len(types) and any(not np.array_equal(array, values[0]) for array in values)


def _leaves(value: Value) -> list[ITensor]:
    if isinstance(value, Alternatives):
        return [leaf for branch in value.branches for leaf in _leaves(branch)]
    return [value] if isinstance(value, ITensor) else []
