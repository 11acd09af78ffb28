"""The topological order in which the node of the lowest rank is always next among those that may follow."""

from collections.abc import Collection, Hashable, Mapping
from heapq import heapify, heappop, heappush
from typing import TypeVar

N = TypeVar("N", bound=Hashable)


def ranked_order(before: Mapping[N, Collection[N]], ranks: Mapping[N, int]) -> list[N]:
    """The nodes in order; those that depend on a cycle are left out.

    Args:
        before: the nodes that precede each node.
        ranks: their ranks, which differ.
    """
    after: dict[N, list[N]] = {}
    for node, makers in before.items():
        for maker in makers:
            after.setdefault(maker, []).append(node)
    missing = {node: len(makers) for node, makers in before.items()}
    ready = [(ranks[node], node) for node, count in missing.items() if not count]
    heapify(ready)
    order: list[N] = []
    while ready:
        _, node = heappop(ready)
        order.append(node)
        for reader in after.get(node, ()):
            missing[reader] -= 1
            if not missing[reader]:
                heappush(ready, (ranks[reader], reader))
    return order
