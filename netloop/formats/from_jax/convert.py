"""``netloop.from_jax``: a JAX function as a network."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from netloop.formats.from_jax.importer import JaxprImporter
from netloop.formats.from_jax.lost_precision import warn_of_lost_precision
from netloop.formats.from_jax.tree_names import argument_names, check_examples, leaf_names, result_names
from netloop.formats.from_jax.unknown_primitives import check_primitives
from netloop.formats.shared.own_operators import OwnOperator, checked
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
        examples: its arguments, for their shapes and element types only: arrays, ``jax.ShapeDtypeStruct``, or
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
    check_examples(function, examples)
    traced, result = jax.make_jaxpr(function, return_shape=True)(*examples)
    check_primitives(traced, own)
    warn_of_lost_precision(traced)
    network = INetworkDefinition()
    network.name = getattr(function, "__name__", network.name)
    constant = _as_names(weights, called)
    arguments = [
        (name, leaf if argument in constant else None)
        for (argument, name), leaf in zip(leaf_names(called, examples), jax.tree.leaves(examples), strict=True)
    ]
    results = result_names(result, [name for name, leaf in arguments if leaf is None])
    JaxprImporter(network, traced, arguments, results, own).add()
    return network


def _as_names(weights: str | Sequence[str], called: Sequence[str]) -> list[str]:
    listed = [weights] if isinstance(weights, str) else [*weights]
    for name in listed:
        if name not in called:
            raise TypeError(f"weights names {name!r}, and the arguments are {', '.join(map(repr, called))}")
    return listed
