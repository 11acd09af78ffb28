"""Networks as functions of TensorFlow, for SavedModels and models of LiteRT."""

import re
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import jax

from netloop.formats.deploy import stablehlo
from netloop.model.network import INetworkDefinition

TF: Any = import_module("tensorflow")
CONVERT: Any = import_module("jax.experimental.jax2tf").convert  # it needs packages that come with TensorFlow


def module_of(
    network: INetworkDefinition, shapes: stablehlo.Shapes | None, batch: str | None, tf32: bool
) -> tuple[Any, Any]:
    """A module of TensorFlow that holds the weights of a network as variables, and its function of fixed types.

    Raises:
        NetworkError: as for ``stablehlo.exported``.
        ValueError: as there; or two inputs have names that are one as an argument.
    """
    function, weights, types = stablehlo.function_of(network, shapes, batch, tf32)
    arguments = _arguments(types)
    polymorphic = {name: None if batch is None else str(of.shape) for name, of in types.items()}
    module = TF.Module()
    with jax.enable_x64(True):
        module.variables_of_network = {name: TF.Variable(value) for name, value in weights.items()}
        converted = CONVERT(function, polymorphic_shapes=[None, polymorphic], with_gradient=False)

        def call(**inputs: Any) -> Any:
            return converted(module.variables_of_network, {name: inputs[arguments[name]] for name in types})

        module.call = TF.function(call, autograph=False)
        return module, module.call.get_concrete_function(
            **{arguments[name]: _spec(arguments[name], of) for name, of in types.items()}
        )


def _spec(name: str, of: jax.ShapeDtypeStruct) -> Any:
    shape = [length if isinstance(length, int) else None for length in of.shape]
    return TF.TensorSpec(shape, of.dtype, name=name)


def _arguments(names: Iterable[str]) -> dict[str, str]:
    """The names of inputs as TensorFlow's arguments: words, so that ``a/b`` is ``a_b``."""
    words: dict[str, str] = {}
    for name in names:
        word = re.sub(r"\W|^(?=\d)", "_", name)
        if word in words.values():
            raise ValueError(f"inputs {word!r} and {name!r} would be one argument of TensorFlow: rename one of them")
        words[name] = word
    return words
