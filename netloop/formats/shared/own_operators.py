"""Operators that the caller of an importer brings along."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from netloop.model.graph.tensor import ITensor
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import LayerError, NetworkError, quoted, require

OwnOperator = Callable[[INetworkDefinition, list[ITensor | None], dict[str, Any]], ITensor | Sequence[ITensor | None]]
"""A function that adds the layers of a node to a network.

It takes the network, the inputs of the node (None for one that is left out) and its attributes by name, and returns
the output or the outputs.
"""


def checked(operators: Mapping[str, OwnOperator] | None) -> Mapping[str, OwnOperator]:
    """The operators of a caller.

    Raises:
        TypeError: they are no dict from names to functions.
    """
    result: Any = {} if operators is None else operators
    if not isinstance(result, Mapping):
        raise TypeError(f"operators are a dict from names to functions, not {type(result).__name__}")
    for name, function in cast(Mapping[Any, Any], result).items():
        if not isinstance(name, str) or not callable(function):
            raise TypeError(f"operators are a dict from names to functions, not from {name!r} to {function!r}")
    return cast(Mapping[str, OwnOperator], result)


def outputs_of_own(
    function: OwnOperator, name: str, network: INetworkDefinition, inputs: Sequence[ITensor | None], attributes: Any
) -> list[ITensor | None]:
    """The outputs of a node, by the function that the caller brings along for its operator.

    Raises:
        LayerError: the function raised an exception, or returned something else than tensors.
    """
    try:
        returned: Any = function(network, [*inputs], dict(attributes))
        outputs: list[Any] = [returned] if isinstance(returned, ITensor) else [*returned]
        for tensor in outputs:
            assert not isinstance(tensor, ITensor) or tensor.type  # reading the type checks the layer
    except NetworkError as error:
        first = error.findings[0]
        raise LayerError(first.what, first.why, first.fix, first.code) from error
    except LayerError:
        raise
    except Exception as error:
        what = f"the function for {quoted(name)} raised {type(error).__name__}: {error}"
        raise LayerError(what, "the code of the function raised an exception", "", "NL411") from error
    for tensor in outputs:
        what = f"the function for {quoted(name)} returned {type(tensor).__name__}"
        require(isinstance(tensor, ITensor | None), what, "it returns tensors of the network, one for each output")
    return outputs
