"""Convert a network to a pure JAX function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from netloop.call_inputs import check_inputs
from netloop.check import ValidatedNetwork, require_valid
from netloop.diagnostics import InputError
from netloop.execution.program_cache import Given, ProgramCache
from netloop.forked import require_jax
from netloop.graph.attributes import check_instance
from netloop.graph.infer import TypeTable
from netloop.layers.sources import IConstantLayer
from netloop.lower import Program, constants_of
from netloop.lower.nesting import DEEPEST_PURE_NEST, require_shallow
from netloop.network import INetworkDefinition
from netloop.passes import LoweringForm, chosen, improve, of_platform

PURE = chosen(None) - {LoweringForm.IF_CONVERSION}
"""The passes for a pure function: with if-conversion, a branch that is not taken would take part in derivatives."""

NamedWeights = dict[str, jax.Array]
PureFunction = Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, jax.Array]]


def to_jax(network: INetworkDefinition) -> tuple[PureFunction, NamedWeights]:
    """Return a network as a pure function, and its weights.

    ``function(weights, inputs)`` returns a dict of the outputs by name, in the order in which they were marked, and
    works under ``jax.jit``, ``jax.grad``, ``jax.vmap`` and the like. ``weights`` has the floating-point constants by
    the names of their layers; ``inputs`` is a dict from names to arrays. A loop whose COUNT limit follows from integer
    constants and shapes can be differentiated in forward and reverse mode, other loops in forward mode only. In reverse
    mode float64 values need JAX's x64 setting; int64 ones do not. Shapes that follow from floating-point constants stay
    fixed, whatever weights are passed. Errors that an engine raises as ExecutionError are not reported, because a pure
    function cannot raise: the affected outputs are undefined.

    Raises:
        NetworkError: the network is invalid, or nested too deep.
    """
    require_shallow(require_valid(check_instance("network", network, INetworkDefinition)).block, DEEPEST_PURE_NEST)
    network = network.copy()
    constants = constants_of(network)
    names = _names(constants)
    fixed = {each.index: each.evaluate() for each in constants if each not in names.values()}

    def make(types: TypeTable, validated: ValidatedNetwork, given: Given) -> Callable[..., list[Any]]:
        passes = of_platform(PURE, jax.default_backend())
        source = improve(network, types, validated, passes)
        program = Program.of(source.network, source.types, source.validated, passes=passes)
        layers = source.network.layers

        def run(weights: list[Any], arrays: list[Any]) -> list[Any]:
            constants = {**fixed, **dict(zip((each.index for each in names.values()), weights, strict=True))}
            values = {layers[index].outputs[0]: array for index, array in constants.items()}
            return program({**values, **dict(zip(source.network.inputs, arrays, strict=True))}).values

        return jax.jit(run)

    programs = ProgramCache(network, make)

    def function(weights: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, jax.Array]:
        require_jax()
        with jax.enable_x64(True):
            given = check_inputs(network.inputs, _as_declared(network, inputs))
            named = [_weight(weights, name, layer) for name, layer in names.items()]
            outputs = programs.find(given)(named, list(given.values()))
            return {tensor.name: array for tensor, array in zip(network.outputs, outputs, strict=True)}

    with jax.enable_x64(True):
        return function, {name: jnp.array(layer.evaluate()) for name, layer in names.items()}


def _names(constants: list[IConstantLayer]) -> dict[str, IConstantLayer]:
    """The floating-point constants by the name of their layer, with ``#index`` appended if the name is taken."""
    names: dict[str, IConstantLayer] = {}
    taken = {each.name for each in constants}
    for layer in constants:
        if layer.outputs[0].type.is_float:
            name = layer.name
            while name in names or (name != layer.name and name in taken):
                name = f"{name}#{layer.index}"
            names[name] = layer
    return names


def _weight(weights: Mapping[str, Any], name: str, layer: IConstantLayer) -> jax.Array:
    wanted = layer.outputs[0].type
    if name not in weights:
        raise InputError(layer.finding("NL605", f"weight {name!r} is missing; it is {wanted}"))
    array = jnp.asarray(weights[name])
    if tuple(array.shape) != wanted.shape:
        raise InputError(layer.finding("NL605", f"weight {name!r} is {wanted}, and was given the shape {array.shape}"))
    return array.astype(wanted.dtype)


def _as_declared(network: INetworkDefinition, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs, with 64-bit types restored where JAX's x64 setting had narrowed them before the call."""
    if not isinstance(inputs, Mapping):
        raise TypeError(f"inputs are a dict from names to arrays, not {type(inputs).__name__}")
    declared = {each.name: each.declared for each in network.inputs}
    given = dict(inputs)
    for name, array in given.items():
        wanted = declared.get(name)
        if isinstance(array, jax.Array) and wanted is not None and array.dtype == _narrowed(wanted.dtype):
            given[name] = array.astype(wanted.dtype)
    return given


def _narrowed(dtype: Any) -> Any:
    with jax.enable_x64(False):
        return jax.dtypes.canonicalize_dtype(dtype)
