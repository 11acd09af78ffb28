"""Names of imported loops and conditionals: the path of the nodes that they come from, ``Loop_3/Loop_2``."""

from collections.abc import Sequence

from netloop.model.layers.conditional import IIfConditional
from netloop.model.layers.loop import ILoop
from netloop.model.network import INetworkDefinition

Group = ILoop | IIfConditional
"""A loop or conditional, whose layers have names that begin with its own."""


class GroupNames:
    """The loops and conditionals of a network that have names."""

    def __init__(self) -> None:
        self._named: set[Group] = set()

    def end_node(self, groups: Sequence[Group], node: str) -> None:
        """Name the loops and conditionals of a node, and put its name before those of nodes inside it."""
        for group in groups:
            if group in self._named:
                _rename(group, group.name, f"{node}/{group.name}")
            elif group.name.startswith("(Unnamed "):
                group.name = node
        self._named.update(groups)

    @staticmethod
    def make_distinct(network: INetworkDefinition) -> None:
        """Number the loops, and the conditionals, that have the name of an earlier one: ``LSTM_0``, ``LSTM_0#2``."""
        for groups in network.loops, network.conditionals:
            taken: set[str] = set()
            for group in groups:
                old = new = group.name
                number = 1
                while new in taken:
                    number += 1
                    new = f"{old}#{number}"
                taken.add(new)
                _rename(group, old, new)


def _rename(group: Group, old: str, new: str) -> None:
    """Give a loop or conditional a new name, which names of its layers begin with too where they began with the old."""
    for part in (group, *group.layers):
        if part.name == old or part.name.startswith(f"{old}/"):
            part.name = new + part.name.removeprefix(old)
