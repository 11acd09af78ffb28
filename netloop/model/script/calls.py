"""The calls that add layers: for each kind of layer, the methods that add it, and the arguments for a given layer."""

import inspect
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from netloop.model.graph import ILayer, ITensor
from netloop.model.graph.network_base import LayerAdder
from netloop.model.layers import LayerMethods
from netloop.model.layers.attention import IAttention
from netloop.model.layers.conditional import IIfConditional
from netloop.model.layers.loop import ILoop
from netloop.model.layers.plugin import IPluginV3Layer

ATTRIBUTE_OF = {
    "axesMask": "axes",
    "dist_collective_op": "operation",
    "kernel_shape": "kernel_size_nd",
    "op": "operation",
    "output_type": "to_type",
    "post_padding": "post_padding_nd",
    "pre_padding": "pre_padding_nd",
    "reduce_op": "reduce_operation",
    "window": "window_size",
    "window_size": "window_size_nd",
}
"""The attribute that a parameter sets, where the layer has none of the parameter's own name."""


class Parameter(NamedTuple):
    """A parameter of a method that adds a layer.

    Attributes:
        name: its name.
        tensors: 1 if it takes a tensor, 2 if it takes a sequence of them, 0 otherwise.
    """

    name: str
    tensors: int


class Method(NamedTuple):
    """A method that adds layers of a kind.

    Attributes:
        owner: the class that has it: the class of networks, loops or conditionals.
        name: its name.
        parameters: its parameters.
    """

    owner: type[LayerAdder]
    name: str
    parameters: tuple[Parameter, ...]

    @property
    def num_tensors(self) -> int | None:
        """The number of tensors that it takes; None for any number."""
        counts = [parameter.tensors for parameter in self.parameters]
        return None if 2 in counts else sum(counts)

    def arguments(self, layer: ILayer) -> list[Any]:
        """The arguments with which the method adds a layer like this one: tensors and attributes."""
        inputs = iter(layer.inputs)
        return [self._argument(parameter, layer, inputs) for parameter in self.parameters]

    def _argument(self, parameter: Parameter, layer: ILayer, inputs: Any) -> Any:
        if parameter.tensors == 1:
            return next(inputs, None)
        if parameter.tensors:
            ends = layer.num_inputs - layer.num_shape_inputs if isinstance(layer, IPluginV3Layer) else layer.num_inputs
            is_first = parameter is self.parameters[0]
            return layer.inputs[:ends] if is_first else layer.inputs[ends:]
        name = parameter.name
        return getattr(layer, name if name in layer.ATTRIBUTES else ATTRIBUTE_OF[name])


@cache
def methods() -> dict[type[ILayer], list[Method]]:
    """The methods that add each kind of layer."""
    results: dict[type[ILayer], list[Method]] = {}
    for owner in (LayerMethods, ILoop, IIfConditional):
        for name in dir(owner):
            if name.startswith(LayerAdder.PREFIXES):
                function = inspect.unwrap(getattr(owner, name))
                hints = get_type_hints(function, include_extras=True)
                result = hints.pop("return")
                if result is not IAttention:  # which is two layers
                    parameters = (Parameter(name, _tensors(hint)) for name, hint in hints.items())
                    results.setdefault(result, []).append(Method(owner, name, tuple(parameters)))
    return results


def _tensors(hint: Any) -> int:
    if hint is ITensor or ITensor in get_args(hint):
        return 2 if get_origin(hint) is Sequence else 1
    return 0
