"""A cache of the programs of a network: one for each combination of input shapes and shape values."""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, Generic, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from netloop.compiler.lower.shape_values import valued_before_run
from netloop.compiler.lru_cache import LruCache
from netloop.compiler.placement import Placement
from netloop.model.check import ValidatedNetwork, known_valid, require_valid
from netloop.model.graph import ITensor, TypeTable
from netloop.model.network import INetworkDefinition
from netloop.process.forked import require_jax
from netloop.values.diagnostics import Finding, InputError
from netloop.values.map_types import Map
from netloop.values.string_arrays import contents
from netloop.values.types import LARGEST_KNOWN_VALUE, Absent, Array, Tensors, TensorType

MOST_PROGRAMS = 64
"""The capacity of the cache; the least recently used program is dropped."""

MOST_SHARED = 1024
"""The number of combinations of shapes that share programs and are remembered, which takes a few kilobytes for each."""

Given = Mapping[ITensor, Any]
"""The arrays of the inputs of a network, in order."""

P = TypeVar("P")


class Sharing(Protocol[P]):
    """Programs that several combinations of input shapes share."""

    def find(self, given: Given) -> P | None:
        """A shared program for some inputs; None if they are to have their own, or are invalid."""
        ...

    def learn(self, given: Given, program: P) -> None:
        """Take note of a program that is for the shapes of some inputs only."""
        ...

    def lasts(self, program: P) -> bool:
        """Whether a program stays that of its inputs; if not, they get one of their own."""
        ...


class ProgramCache(Generic[P]):
    """The programs of a network, one for each combination of input shapes and of values that decide shapes.

    Args:
        network: the network, which is no longer edited.
        make: compiles the program for some types of the inputs, which threads may do at the same time.
        placement: the device of the programs. Arrays that are committed to it have the same program as those that JAX
            may move there; others have programs of their own. None if each sharding has its own.
        sharing: the programs that several combinations share; None if each has its own.

    Attributes:
        network: the network, which is no longer edited.
        array_type: the type of JAX's arrays.
        shape_inputs: its inputs whose values, and not only their shapes, decide the shape of some tensor.
    """

    def __init__(
        self,
        network: INetworkDefinition,
        make: Callable[[TypeTable, ValidatedNetwork, Given], P],
        placement: Placement | None = None,
        sharing: Sharing[P] | None = None,
    ) -> None:
        self.network, self._placement, self._sharing = network, placement, sharing
        self.shape_inputs = inputs_with_sizes(network)
        self._latest: tuple[Any, P | None] = None, None
        require_jax()
        self._names = [tensor.name for tensor in network.inputs]
        with jax.ensure_compile_time_eval():  # while JAX traces, zeros() would be a tracer and not an array
            self.array_type = type(jnp.zeros(()))
        self._array_types = {np.ndarray, self.array_type}
        self._make = make
        self._programs, self._shared = LruCache[Any, P](MOST_PROGRAMS), LruCache[Any, P](MOST_SHARED)

    def __len__(self) -> int:
        return len(self._programs)

    def __iter__(self) -> Iterator[P]:
        return chain(self._programs, self._shared)

    @property
    def latest(self) -> P | None:
        """The program that was found last; None before the first call."""
        return self._latest[1]

    def find(self, given: Given, is_checked: bool = False) -> P:
        """Return the program for some inputs; make it if it is new.

        Args:
            given: the inputs, or their types.
            is_checked: whether the network was found valid for these types, and needs no check for them.

        Raises:
            NetworkError: for these inputs the network is invalid, or has no fixed shapes.
            InputError: a shape depends on the value of an input that JAX is tracing.
        """
        key = self._key(list(given.values()))
        program = self._known(key)
        if program is None:
            with self._programs.making(key):
                # another thread may have made it
                program = self._known(key)
                if program is None:
                    program = self._new(key, given, is_checked)
        self._latest = key, program
        return program

    def _known(self, key: Any) -> P | None:
        """The cached program of a key; None if there is none, or its inputs are to get one of their own."""
        program = self._programs.get(key)
        program = self._shared.get(key) if program is None else program
        return program if program is not None and self._lasts(program) else None

    def _new(self, key: Any, given: Given, is_checked: bool) -> P:
        program = self._sharing.find(given) if self._sharing else None
        # combinations that share programs displace none that has its own
        if program is not None:
            self._shared.put(key, program)
            return program
        program = self._make(*self._specialise(given, is_checked), given)
        self._programs.put(key, program)
        if self._sharing:
            self._sharing.learn(given, program)
        return program

    def _lasts(self, program: P) -> bool:
        return self._sharing is None or self._sharing.lasts(program)

    def recall(self, inputs: Mapping[str, Any]) -> tuple[P, list[Any]] | None:
        """Return the program of an earlier call with inputs of these types, and the inputs in order.

        They need no check again. None if there is no such program, or an input is not an array.
        """
        if not isinstance(inputs, dict) or len(inputs) != len(self._names):
            return None
        arrays = [inputs.get(name) for name in self._names]
        # exact types, as a tracer or a subclass has to be looked at
        if not self._array_types.issuperset(map(type, arrays)):
            return None
        key = self._key(arrays)
        # a pair is replaced as a whole, so that the usual call needs no lock
        latest, program = self._latest
        if key != latest or program is None or not self._lasts(program):
            program = self._known(key)
            if program is None:
                return None
            self._latest = key, program
        return program, arrays

    def _key(self, arrays: list[Any]) -> Any:
        """The properties of some inputs that a program is compiled for."""
        key = [self._array_key(array) for array in arrays]
        for tensor in self.shape_inputs:
            value = _value(tensor, arrays[tensor.position])
            key.append(None if value is None else contents(value))
        return tuple(key)

    def _array_key(self, value: Any) -> Any:
        """The shape and element type of a value, and its sharding if it is bound to other devices.

        A committed array has to stay on its devices; JAX may move a numpy array, or one made from it.
        """
        # such a network runs on the host, which asks for the types of its values itself
        if isinstance(value, Tensors | Absent | Map):
            return None
        is_bound = isinstance(value, Tracer) or getattr(value, "committed", False)
        sharding = getattr(value, "sharding", None) if is_bound else None
        is_here = is_bound and self._placement is not None and sharding == self._placement.sharding
        return value.shape, value.dtype, None if is_here else sharding

    def _specialise(self, given: Given, is_checked: bool) -> tuple[TypeTable, ValidatedNetwork]:
        values = {tensor: _value(tensor, given[tensor]) for tensor in self.shape_inputs}
        types: dict[ITensor, TensorType] = {}
        for tensor, array in given.items():
            assert tensor.declared is not None
            types[tensor] = tensor.declared
            if tensor.declared.is_tensor:
                types[tensor] = TensorType(tensor.declared.dtype, tuple(array.shape), values.get(tensor))
        table = TypeTable(types)
        if not is_checked:
            return table, require_valid(self.network, table)
        # types of the declared inputs are inferred already
        own = (tensor for layer in self.network.layers for tensor in layer.outputs)
        table.learn(self.network.types, ((tensor, tensor) for tensor in own), with_values=True)
        return table, known_valid(self.network)


def inputs_with_sizes(network: INetworkDefinition) -> list[ITensor]:
    """The inputs whose values decide the shape of some tensor."""
    needed = valued_before_run(network)
    return [tensor for tensor in network.inputs if tensor in needed and tensor.type.is_tensor]


def _value(tensor: ITensor, array: Any) -> Array | None:
    """The value of a shape input; None if it is too large to decide a shape."""
    if isinstance(array, Tracer):
        what = f"input {tensor.name!r} decides a shape, and JAX is tracing it"
        fix = "pass it as a numpy array, outside of jit and vmap"
        raise InputError(Finding("NL604", what, why="a compiled program has fixed shapes", fix=fix, at=tensor))
    return np.asarray(array) if array.nbytes <= LARGEST_KNOWN_VALUE else None
