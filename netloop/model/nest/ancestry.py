"""A forest that grows at its leaves, and finds ancestors in logarithmic time."""

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Ancestry(Generic[T]):
    """Nodes with their parents. None stands for the root of all trees, which is at depth 0.

    Each node has a jump to an ancestor, so placed that the number of steps to any ancestor grows with the logarithm of
    the depth (Myers, "An applicative random-access stack", 1983).
    """

    def __init__(self) -> None:
        self._parents: dict[T | None, T | None] = {None: None}
        self._jumps: dict[T | None, T | None] = {None: None}
        self._depths: dict[T | None, int] = {None: 0}

    def add(self, node: T, parent: T | None) -> None:
        """Add a node below another."""
        depths, jump = self._depths, self._jumps[parent]
        is_even = depths[parent] - depths[jump] == depths[jump] - depths[self._jumps[jump]]
        self._parents[node], self._depths[node] = parent, depths[parent] + 1
        self._jumps[node] = self._jumps[jump] if is_even else parent

    def __contains__(self, node: T) -> bool:
        return node in self._parents

    def depth(self, node: T | None) -> int:
        """The number of nodes from the root to a node."""
        return self._depths[node]

    def parent(self, node: T) -> T | None:
        """The node above a node."""
        return self._parents[node]

    def ancestor(self, node: T | None, depth: int) -> T | None:
        """The ancestor of a node at a depth, which is at most the depth of the node."""
        while self._depths[node] > depth:
            jump = self._jumps[node]
            node = self._parents[node] if self._depths[jump] < depth else jump
        return node

    def common(self, first: T | None, second: T | None) -> T | None:
        """The deepest node that is an ancestor of two nodes, or one of them."""
        depth = min(self._depths[first], self._depths[second])
        first, second = self.ancestor(first, depth), self.ancestor(second, depth)
        while first != second:
            jumps = self._jumps[first], self._jumps[second]
            first, second = jumps if jumps[0] != jumps[1] else (self._parents[first], self._parents[second])
        return first
