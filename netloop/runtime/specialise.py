"""Programs for the shapes and shape values that calls bring, made once for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jax.core import Tracer

from netloop.check import require_sound
from netloop.diagnostics import Finding, InputError
from netloop.graph.infer import TypeTable
from netloop.graph.tensor import ITensor
from netloop.lower import Program
from netloop.network import INetworkDefinition
from netloop.types import LARGEST_KNOWN_VALUE, TensorType

Given = Mapping[ITensor, Any]
"""The arrays of the inputs of a network."""


def shape_inputs(network: INetworkDefinition) -> list[ITensor]:
    """The inputs whose values, and not only their shapes, decide the shape of some tensor."""
    needed = network.shape_tensors()
    return [each for each in network.inputs if each in needed and _is_small(each)]


def _is_small(tensor: ITensor) -> bool:
    declared = tensor.declared
    return declared is not None and declared.volume * declared.dtype.itemsize <= LARGEST_KNOWN_VALUE


def specialise(network: INetworkDefinition, given: Given, valued: list[ITensor]) -> Program:
    """The program of a network for inputs of certain shapes, and of certain values for the inputs ``valued``.

    Raises:
        NetworkError: for such inputs the network has no meaning, or no fixed shapes.
    """
    types: dict[ITensor, TensorType] = {}
    for tensor, array in given.items():
        assert tensor.declared is not None
        value = concrete(tensor, array) if tensor in valued else None
        types[tensor] = TensorType(tensor.declared.dtype, tuple(array.shape), value)
    table = TypeTable(types)
    return Program(network, table, require_sound(network, table))


def concrete(tensor: ITensor, array: Any) -> np.ndarray[Any, Any]:
    """The value of a shape input.

    Raises:
        InputError: it is not known, as JAX is tracing it.
    """
    if isinstance(array, Tracer):
        what = f"input {tensor.name!r} decides a shape, and JAX is tracing it"
        why = "a compiled program has fixed shapes"
        raise InputError(
            Finding("NL604", what, why=why, fix="give it as a numpy array, outside jit and vmap", at=tensor)
        )
    return np.asarray(array)
