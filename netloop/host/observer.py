"""Report the elements of chosen tensors while a network runs."""

from collections.abc import Callable, Mapping
from typing import Any

from netloop.graph.tensor import ITensor
from netloop.layers.loop import ILoop
from netloop.nest import Scopes
from netloop.tensor_values import to_user

Listener = Callable[[ITensor, tuple[int, ...], Any], None]
"""Takes an observed tensor, the iterations of the loops in which it varies, the outermost first, and its value."""


class TensorObserver:
    """Reports each element of some tensors once, in the order of the iterations.

    Attributes:
        tensors: the tensors.
    """

    def __init__(self, tensors: frozenset[ITensor], scopes: Scopes, listener: Listener) -> None:
        self.tensors = tensors
        self._scopes = scopes
        self._listener = listener
        self._latest: dict[ITensor, tuple[int, ...]] = {}

    def see(self, tensor: ITensor, value: Any, trips: Mapping[ILoop, int]) -> None:
        """Report the value of a tensor in some iterations, unless it has been reported."""
        # a WHILE condition is computed before its iteration, and again in it
        at = tuple(trips[loop] for loop in self._scopes.chain_of(tensor))
        if tensor not in self._latest or at > self._latest[tensor]:
            self._latest[tensor] = at
            self._listener(tensor, at, to_user(value, lambda array: array))
