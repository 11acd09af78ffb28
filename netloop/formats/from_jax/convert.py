"""``netloop.from_jax``: a JAX function as a network."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from netloop.formats.from_jax.element_types import element_type, tensor_shape
from netloop.formats.from_jax.facts import Facts
from netloop.formats.from_jax.importer import JaxprImporter
from netloop.formats.from_jax.lengths import declared_shape
from netloop.formats.from_jax.tree_names import argument_names, leaf_names, result_names
from netloop.formats.from_jax.unknown_primitives import check_primitives
from netloop.formats.shared.own_operators import OwnOperator, checked
from netloop.formats.shared.pruning import keep_live
from netloop.model.formulas import as_dtype
from netloop.model.graph.tensor import ITensor
from netloop.model.network import INetworkDefinition


def from_jax(
    function: Callable[..., Any],
    *examples: Any,
    names: Sequence[str] | None = None,
    weights: str | Sequence[str] = (),
    rules: Mapping[str, OwnOperator] | None = None,
) -> INetworkDefinition:
    """Trace a JAX function, and return a network that computes the same.

    ``lax.scan``, ``lax.while_loop`` and ``lax.fori_loop`` become loops, ``lax.cond`` and ``lax.switch`` conditionals;
    functions that are called, and their derivatives, are inlined. Arrays that the function closes over become
    constants.

    Inputs and outputs are named by the paths of their leaves in the arguments and the result: ``x``, ``state.h``,
    ``output``. Random keys are passed as the words of ``jax.random.key_data``.

    Args:
        function: the function, of arrays and pytrees of them.
        examples: arguments of it, of which only shapes and element types count: arrays, ``jax.ShapeDtypeStruct``, or
            pytrees of either. A symbolic length of ``jax.export.symbolic_shape`` becomes -1.
        names: names of the arguments; by default those of the function's parameters.
        weights: the names of arguments whose arrays become constants, named by their paths, which can be refitted.
        rules: functions for primitives, by name; they replace netloop's. ``rule(network, operands, params)`` adds the
            layers of an equation to the network and returns its result or results; ``operands`` are tensors.

    Raises:
        ModelError: the function has primitives or element types that networks do not have; it has all of them.
        TypeError: an argument is of the wrong Python type.
    """
    if not callable(function):
        raise TypeError(f"from_jax takes a function, not {type(function).__name__}")
    own = checked(rules)
    called = argument_names(function, len(examples), names)
    traced, result = jax.make_jaxpr(function, return_shape=True)(*examples)
    check_primitives(traced, own)
    network = INetworkDefinition()
    network.name = getattr(function, "__name__", network.name)
    importer = JaxprImporter(network, own)
    constant = _as_names(weights, called)
    leaves = [leaf for example in examples for leaf in jax.tree.leaves(example)]
    inputs = [
        importer.facts.weight(name, leaf, variable.aval)
        if argument in constant
        else _input(importer.facts, name, variable.aval)
        for (argument, name), leaf, variable in zip(
            leaf_names(called, examples), leaves, traced.jaxpr.invars, strict=True
        )
    ]
    tensors = importer.inline(traced, inputs)
    before = len(network.layers)
    whole = [
        importer.facts.whole(tensor, atom.aval) for tensor, atom in zip(tensors, traced.jaxpr.outvars, strict=True)
    ]
    _mark(importer.facts, whole, result_names(result, [tensor.name for tensor in network.inputs]))
    importer.name_layers(before, "output")
    keep_live(network)
    return network


def _as_names(weights: str | Sequence[str], called: Sequence[str]) -> list[str]:
    listed = [weights] if isinstance(weights, str) else [*weights]
    for name in listed:
        if name not in called:
            raise TypeError(f"weights names {name!r}, and the arguments are {', '.join(map(repr, called))}")
    return listed


def _input(facts: Facts, name: str, aval: Any) -> ITensor:
    shape = tensor_shape(aval)
    tensor = facts.make.network.add_input(name, as_dtype(element_type(aval)), declared_shape(shape))
    facts.lengths.declare(tensor, shape)
    return tensor


def _mark(facts: Facts, outputs: Sequence[ITensor], names: Sequence[str]) -> None:
    """Mark outputs; an input, a constant or a second mark of one tensor takes an identity layer."""
    network = facts.make.network
    for tensor, name in zip(outputs, names, strict=True):
        if tensor.is_network_input or tensor.is_network_output or facts.is_weight(tensor):
            tensor = facts.make.identity(tensor)
        tensor.name = name
        network.mark_output(tensor)
