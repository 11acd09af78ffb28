"""The values at a point of a run on the host, and the observer that reports them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from netloop.model.graph import ITensor, TypeTable
from netloop.model.layers.loop import ILoop
from netloop.model.nest import Scopes
from netloop.values.diagnostics import Finding
from netloop.values.map_types import Map
from netloop.values.tensor_values import to_user
from netloop.values.types import LARGEST_KNOWN_VALUE, Absent, Array, Tensors, TensorType


def bucket(length: int) -> int:
    """A length rounded up to a multiple of 8, or of a quarter of the power of 2 below it: at most a quarter longer.

    Lengths of 0 and 1 stay as they are: the first has no elements, and the second may be broadcast.
    """
    if length < 2:
        return length
    step = max(8, 1 << max(0, length.bit_length() - 3))
    return -(-length // step) * step


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


@dataclass(frozen=True)
class Poisoned:
    """Stands for a value that is invalid because something failed; it counts only if something needs the value."""

    finding: Finding


NO_ARRAY = Poisoned, Tensors, Absent, Map
NO_TYPE = frozenset({*NO_ARRAY, type(None)})
"""Values about which a run of steps depends on their kind alone; None where there is none."""


@dataclass
class HostFrame:
    """The state of a run at a point; ``trips`` has the number of the current iteration of each enclosing loop.

    Attributes:
        values: the values of the tensors so far, or ``Poisoned``.
        is_iteration: whether the steps belong to an iteration that is made, and do not only compute what a coming one
            would see.
        observer: reports observed tensors; None if there are none.
        valued: the tensors whose values decide the shape of some tensor.
        known: the types of the tensors whose values, which are in them, are parts of programs.
        types: the types of values met so far, each with its value.
    """

    values: dict[ITensor, Any]
    trips: dict[ILoop, int] = field(default_factory=dict[ILoop, int])
    is_iteration: bool = True
    observer: TensorObserver | None = None
    valued: frozenset[ITensor] = frozenset()
    known: Mapping[ITensor, TensorType] = field(default_factory=dict[ITensor, TensorType])
    types: dict[ITensor, tuple[Any, TensorType]] = field(default_factory=dict[ITensor, tuple[Any, TensorType]])

    def inside(self, values: Mapping[ITensor, Any]) -> HostFrame:
        """A frame within this one, with more values."""
        # copies, as an iteration must leave nothing in the frame around it
        own = {**self.values, **values}, dict(self.trips), self.is_iteration, self.observer
        return HostFrame(*own, self.valued, self.known, dict(self.types))

    def type_table(self) -> TypeTable:
        """The types of all tensors, as far as the values so far determine them."""
        arrays = (key for key, value in self.values.items() if not isinstance(value, NO_ARRAY))
        return TypeTable({array: self._typed(array) for array in arrays} | dict(self.known))

    def arguments_of(self, reads: Iterable[ITensor]) -> list[ITensor]:
        """Those of the tensors that some steps read which have a value so far that is no part of their program."""
        return [tensor for tensor in reads if tensor in self.values and tensor not in self.known]

    def key_of(self, tensor: ITensor) -> Hashable:
        """A key of the type of a tensor: equal where the types are, and so are the values that decide a shape."""
        value: Any = self.values.get(tensor)
        if type(value) in NO_TYPE:
            return type(value)
        shape_value = self._shape_value(tensor, value)
        return value.dtype, value.shape, None if shape_value is None else shape_value.tobytes()

    def bucket_key_of(self, tensor: ITensor) -> Hashable:
        """A key of the type of a tensor that is equal for lengths that share buckets."""
        value: Any = self.values.get(tensor)
        return type(value) if type(value) in NO_TYPE else (value.dtype, *map(bucket, value.shape))

    def _typed(self, tensor: ITensor) -> TensorType:
        value, result = self.values[tensor], self.types.get(tensor)
        if result is None or result[0] is not value:
            type = TensorType(np.dtype(value.dtype), tuple(value.shape), self._shape_value(tensor, value))
            result = self.types[tensor] = value, type
        return result[1]

    def _shape_value(self, tensor: ITensor, value: Any) -> Array | None:
        """A value that decides a shape; others are left out of types, so that no piece is compiled for each value."""
        is_shape = tensor in self.valued and value.nbytes <= LARGEST_KNOWN_VALUE
        return np.asarray(value) if is_shape else None

    def see(self, tensors: Iterable[ITensor]) -> None:
        """Report those of some tensors that are observed and have a value here."""
        if self.observer is None:
            return
        for tensor in (tensor for tensor in tensors if tensor in self.observer.tensors):
            # a value that failed is no element; its error is raised if an output needs it
            if not isinstance(value := self.values.get(tensor), Poisoned | None):
                self.observer.see(tensor, value, self.trips)

    def poisoned(self, tensors: Iterable[ITensor | None]) -> Poisoned | None:
        """The first of some tensors that is poisoned."""
        values = (self.values.get(tensor) for tensor in tensors if tensor is not None)
        return next((value for value in values if isinstance(value, Poisoned)), None)
