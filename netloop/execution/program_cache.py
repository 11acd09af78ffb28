"""The programs of a network: one for each set of input shapes and shape values that calls bring, made once and kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from netloop.check import ValidatedNetwork, require_valid
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
    """

    def __init__(self, network: INetworkDefinition, make: Callable[[TypeTable, ValidatedNetwork, Given], P]) -> None:
        self.network = network
        needed = network.shape_tensors()
        self.shape_inputs = [each for each in network.inputs if each in needed and each.type.is_tensor]
        self._latest: tuple[Any, P | None] = None, None
        self._names = [each.name for each in network.inputs]
        with jax.ensure_compile_time_eval():  # where JAX is tracing, it would make what is traced
            self._array_types = {np.ndarray, type(jnp.zeros(()))}
        self._make = make
        self._kept: OrderedDict[Any, P] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def latest(self) -> P | None:
        """What was found last; None before the first."""
        return self._latest[1]

    def find(self, given: Given) -> P:
        """The program for such inputs.

        Raises:
            NetworkError: for such inputs the network has no meaning, or no fixed shapes.
            InputError: a shape depends on the value of an input that JAX is tracing.
        """
        arrays = list(given.values())
        key = self._key(arrays)
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                found = self._kept[key] = self._make(*self._specialise(given), given)
                if len(self._kept) > MOST_PROGRAMS:
                    self._kept.popitem(last=False)
            return self._use(key, found)

    def recall(self, inputs: Mapping[str, Any]) -> tuple[P, list[Any]] | None:
        """The program that was found for inputs like these, which need no check, and the inputs in order.

        None if there is no such program, or these are not all arrays.
        """
        if not isinstance(inputs, dict) or len(inputs) != len(self._names):
            return None
        arrays = [inputs.get(name) for name in self._names]
        if not self._array_types.issuperset(map(type, arrays)):
            return None
        key = self._key(arrays)
        latest, found = self._latest
        if key != latest:
            with self._lock:
                found = self._kept.get(key)
                if found is not None:
                    self._use(key, found)
        return None if found is None else (found, arrays)

    def _use(self, key: Any, found: P) -> P:
        """Note what was found as the latest."""
        self._kept.move_to_end(key)
        self._latest = key, found
        return found

    def _key(self, arrays: list[Any]) -> Any:
        """What of some inputs a program counts on."""
        forms = [_form(each) for each in arrays]
        for each in self.shape_inputs:
            value = _value(each, arrays[each.position])
            forms.append(None if value is None else value.tobytes())
        return tuple(forms)

    def _specialise(self, given: Given) -> tuple[TypeTable, ValidatedNetwork]:
        values = {tensor: _value(tensor, given[tensor]) for tensor in self.shape_inputs}
        types: dict[ITensor, TensorType] = {}
        for tensor, array in given.items():
            assert tensor.declared is not None
            types[tensor] = tensor.declared
            if tensor.declared.is_tensor:
                types[tensor] = TensorType(tensor.declared.dtype, tuple(array.shape), values.get(tensor))
        table = TypeTable(types)
        return table, require_valid(self.network, table)


def _value(tensor: ITensor, array: Any) -> Array | None:
    """The value of a shape input; None if it is too large to be one."""
    if isinstance(array, Tracer):
        what = f"input {tensor.name!r} decides a shape, and JAX is tracing it"
        fix = "give it as a numpy array, outside of jit and vmap"
        raise InputError(Finding("NL604", what, why="a compiled program has fixed shapes", fix=fix, at=tensor))
    return np.asarray(array) if array.nbytes <= LARGEST_KNOWN_VALUE else None


def _form(value: Any) -> Any:
    """What of a value a program counts on, but for what a shape input holds.

    An array has to stay where it was put; JAX may move a numpy array, or what was made from one.
    """
    if isinstance(value, (Tensors, Absent)):
        return None
    is_bound = isinstance(value, Tracer) or getattr(value, "committed", False)
    return value.shape, value.dtype, getattr(value, "sharding", None) if is_bound else None
