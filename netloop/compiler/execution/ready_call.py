"""The fast path of a call: inputs of the same types as in the previous one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from netloop.compiler.jax_settings import settings_are_wanted
from netloop.model.call_inputs import refuse_deleted
from netloop.model.device_errors import DEVICE_ERRORS, device_finding
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import ExecutionError

BoundCall = Callable[[Sequence[Any]], list[Any]]
"""The call of a program with the weights that it has: takes the inputs, in order, and returns the outputs."""

WIDE = 8
"""The size in bytes of the elements that JAX narrows by default."""


class KnownInputs:
    """The exact types of inputs that a program takes as they are.

    Args:
        names: the names of the inputs.
        arrays: inputs that the program takes.
        of_jax: the type of JAX's arrays.

    Attributes:
        are_arrays: whether each is an array of numpy or JAX, of which the type says all.
        are_narrowed: whether JAX narrows one where a call has no ``pinned_settings``.
    """

    __slots__ = ("_names", "_of_jax", "_types", "are_arrays", "are_narrowed")

    def __init__(self, names: Sequence[str], arrays: Sequence[Any], of_jax: type) -> None:
        self._names, self._of_jax = names, of_jax
        self._types = self._exact(arrays)
        self.are_arrays = None not in self._types
        self.are_narrowed = any(type(array) is np.ndarray and array.dtype.itemsize >= WIDE for array in arrays)

    def arrays(self, inputs: Mapping[str, Any]) -> list[Any] | None:
        """The inputs in order, if they have these types and the settings of JAX allow a call; else None."""
        if type(inputs) is not dict or len(inputs) != len(self._names) or not settings_are_wanted():
            return None
        arrays = [*map(inputs.get, self._names)]
        return arrays if self._exact(arrays) == self._types else None

    def _exact(self, arrays: Sequence[Any]) -> list[Any]:
        """The key by which each array decides the program: its type, and its sharding if it has to stay there.

        This runs in every call. JAX has one ``aval`` for equal types, so that comparing two of them takes no time.
        """
        of_jax = self._of_jax
        return [
            (array.aval, array.committed and array.sharding)
            if type(array) is of_jax
            else (array.shape, array.dtype)
            if type(array) is np.ndarray
            else None
            for array in arrays
        ]


class GuardedCall:
    """The call of a program, whose failures are errors of netloop.

    Args:
        tensors: the inputs of the network.
        call: the call.

    Attributes:
        tensors: the inputs of the network.
    """

    __slots__ = ("_call", "tensors")

    def __init__(self, tensors: Sequence[ITensor], call: BoundCall) -> None:
        self.tensors, self._call = tensors, call

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """Run the program; return its outputs, in order.

        Raises:
            InputError: the memory of an input was donated to an earlier call.
            ExecutionError: a computation failed.
        """
        try:
            return self._call(arrays)
        except (RuntimeError, ValueError, MemoryError) as error:
            refuse_deleted(self.tensors, arrays)
            if isinstance(error, DEVICE_ERRORS):
                raise ExecutionError(device_finding(error)) from error
            raise


class FoundCall(NamedTuple):
    """A program that was found for some inputs, with the weights of an engine.

    Attributes:
        call: its call.
        generation: what identifies the weights; None if they may be replaced at once.
        is_general: whether any inputs of the same types have this program.
        needs_settings: whether it runs in ``pinned_settings``, whatever its inputs: the host may compile parts of it.
    """

    call: GuardedCall
    generation: object
    is_general: bool
    needs_settings: bool


class ReadyCall(NamedTuple):
    """A call that needs no search.

    Attributes:
        inputs: the inputs that it takes.
        call: the call.
        generation: what identifies the weights.
    """

    inputs: KnownInputs
    call: BoundCall
    generation: object

    @staticmethod
    def of(
        found: FoundCall, inputs: KnownInputs, settings: Callable[[], AbstractContextManager[Any]]
    ) -> ReadyCall | None:
        """A call that was found for some inputs; None if others of the same types need a search.

        Args:
            found: the call.
            inputs: the inputs.
            settings: returns the context in which the engine calls what needs one.
        """
        if not (found.is_general and inputs.are_arrays):
            return None

        def with_settings(arrays: Sequence[Any]) -> list[Any]:
            with settings():
                return found.call(arrays)

        is_bare = not (found.needs_settings or inputs.are_narrowed)
        return ReadyCall(inputs, found.call if is_bare else with_settings, found.generation)
