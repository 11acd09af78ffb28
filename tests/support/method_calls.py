"""Every method that adds a layer, with valid arguments. Those of a network are in ``layer_specs``."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import netloop as trt
from netloop.model.graph.network_base import LayerAdder
from tests.support.layer_specs import CALLS, Arguments, B, F, I, Tensors

OF_LOOP: dict[str, Arguments] = {
    "add_trip_limit": lambda t: {"tensor": t(I), "kind": trt.TripLimit.COUNT},
    "add_iterator": lambda t: {"tensor": t(F, 2, 3), "axis": 0, "reverse": False},
    "add_recurrence": lambda t: {"initial_value": t(F, 2)},
    "add_loop_output": lambda t: {"tensor": t(F, 2), "kind": trt.LoopOutput.LAST_VALUE, "axis": 0},
}
OF_CONDITIONAL: dict[str, Arguments] = {
    "set_condition": lambda t: {"condition": t(B)},
    "add_input": lambda t: {"input": t(F, 2)},
    "add_output": lambda t: {"true_subgraph_output": t(F, 2), "false_subgraph_output": t(F, 2)},
}
NOT_LAYERS = {
    "add_input",
    "add_sequence_input",
    "add_optional_input",
    "add_map_input",
    "add_plugin",
    "add_plugin_v2",
    "add_loop",
    "add_if_conditional",
}
"""The methods of a network that add something else."""

RECEIVERS: dict[type, tuple[Callable[[trt.INetworkDefinition], Any], dict[str, Arguments]]] = {
    trt.INetworkDefinition: (lambda network: network, CALLS),
    trt.ILoop: (lambda network: network.add_loop(), OF_LOOP),
    trt.IIfConditional: (lambda network: network.add_if_conditional(), OF_CONDITIONAL),
}


@dataclass(frozen=True)
class Method:
    """A method that adds a layer."""

    cls: type
    name: str

    def __str__(self) -> str:
        return f"{self.cls.__name__}.{self.name}"

    def prepare(self) -> tuple[trt.INetworkDefinition, dict[str, Any], Callable[..., Any]]:
        """A network with what the call needs, good arguments, and the bound method."""
        network = trt.INetworkDefinition()
        receiver, arguments = RECEIVERS[self.cls]
        return network, arguments[self.name](Tensors(network)), getattr(receiver(network), self.name)


def methods_of(cls: type) -> Iterator[str]:
    """The methods of a class that add layers."""
    skipped = NOT_LAYERS if cls is trt.INetworkDefinition else frozenset[str]()
    return (name for name in dir(cls) if name.startswith(LayerAdder.PREFIXES) and name not in skipped)


METHODS = [Method(cls, name) for cls, (_, arguments) in RECEIVERS.items() for name in arguments]
