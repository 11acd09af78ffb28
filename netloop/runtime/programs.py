"""The programs of a network: one for each set of input shapes and shape values that calls bring, made once and kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import numpy as np
from jax.core import Tracer

from netloop.check import Sound, require_sound
from netloop.diagnostics import Finding, InputError
from netloop.graph.infer import TypeTable
from netloop.graph.tensor import ITensor
from netloop.network import INetworkDefinition
from netloop.types import LARGEST_KNOWN_VALUE, Absent, Array, Tensors, TensorType

MOST_PROGRAMS = 64
"""How many programs are kept; the one used longest ago makes room."""

Given = Mapping[ITensor, Any]
"""The arrays of the inputs of a network."""

P = TypeVar("P")


class Programs(Generic[P]):
    """The programs of a network, as ``make`` makes them.

    Attributes:
        network: the network; nobody edits it any more.
        shape_inputs: its inputs whose values, and not only their shapes, decide the shape of some tensor.
        latest: what was found last; None before the first.
    """

    def __init__(self, network: INetworkDefinition, make: Callable[[TypeTable, Sound, Given], P]) -> None:
        self.network = network
        needed = network.shape_tensors()
        self.shape_inputs = [each for each in network.inputs if each in needed and each.type.is_tensor]
        self.latest: P | None = None
        self._make = make
        self._kept: OrderedDict[Any, P] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, given: Given) -> P:
        """The program for such inputs.

        Raises:
            NetworkError: for such inputs the network has no meaning, or no fixed shapes.
            InputError: a shape depends on the value of an input that JAX is tracing.
        """
        values = {tensor: _value(tensor, given[tensor]) for tensor in self.shape_inputs}
        key = (
            tuple(_form(value) for value in given.values()),
            tuple(None if value is None else value.tobytes() for value in values.values()),
        )
        with self._lock:
            if key not in self._kept:
                self._kept[key] = self._make(*self._specialise(given, values), given)
                if len(self._kept) > MOST_PROGRAMS:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
            self.latest = self._kept[key]
            return self.latest

    def _specialise(self, given: Given, values: Mapping[ITensor, Array | None]) -> tuple[TypeTable, Sound]:
        types: dict[ITensor, TensorType] = {}
        for tensor, array in given.items():
            assert tensor.declared is not None
            types[tensor] = tensor.declared
            if tensor.declared.is_tensor:
                types[tensor] = TensorType(tensor.declared.dtype, tuple(array.shape), values.get(tensor))
        table = TypeTable(types)
        return table, require_sound(self.network, table)


def _value(tensor: ITensor, array: Any) -> Array | None:
    """The value of a shape input; None if it is too large to be one."""
    if isinstance(array, Tracer):
        what = f"input {tensor.name!r} decides a shape, and JAX is tracing it"
        fix = "give it as a numpy array, outside of jit and vmap"
        raise InputError(Finding("NL604", what, why="a compiled program has fixed shapes", fix=fix, at=tensor))
    return np.asarray(array) if array.nbytes <= LARGEST_KNOWN_VALUE else None


def _form(value: Any) -> Any:
    """What of a value a program counts on."""
    return None if isinstance(value, Tensors | Absent) else (value.shape, _placement(value))


def _placement(array: Any) -> Any:
    """Where an array has to stay; None if JAX may move it, as it may a numpy array or what was made from one."""
    bound = isinstance(array, Tracer) or getattr(array, "committed", False)
    return getattr(array, "sharding", None) if bound else None
