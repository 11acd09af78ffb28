"""The smallest part of a network in which an engine and a peer differ."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from netloop.api.engine import ICudaEngine, compile
from netloop.formats.shared.pruning import keep
from netloop.model.check import require_valid
from netloop.model.graph import ILayer, ITensor
from netloop.model.layers.sources import IConstantLayer
from netloop.model.nest import Block, layers_of
from netloop.model.network import INetworkDefinition
from netloop.tools.peers.agreement import Agreement, agreements
from netloop.tools.peers.base import Peer
from netloop.tools.peers.differences import values_of
from netloop.values.types import Array, data_type


@dataclass(frozen=True)
class Failure:
    """A part of a network in which an engine and a peer differ.

    Attributes:
        network: the part, as a network of its own; its inputs are inputs of the network, and tensors inside it.
        inputs: their arrays: those of the peer.
        found: the difference.
    """

    network: INetworkDefinition
    inputs: dict[str, Array]
    found: list[Agreement]


def smallest_failure(
    kind: type[Peer],
    network: INetworkDefinition,
    inputs: Mapping[str, Any],
    tensor: ITensor,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    engine: ICudaEngine | None = None,
) -> Failure | None:
    """The smallest part of a network that ends with a tensor, and in which engine and peer differ.

    It starts with the layer or the whole loop or conditional that computes the tensor, and adds what comes before until
    the two differ: what one layer alone does not show may follow from several, fused to one kernel.

    Args:
        kind: the class of the peer.
        network: the network.
        inputs: an array for each input, by name.
        tensor: the tensor, usually the first that differs.
        rtol: the relative tolerance of floating-point numbers, as of ``compare``.
        atol: the absolute tolerance, added to the relative one.
        engine: an engine of the network, whose precision of products holds; None for that of ``netloop.compile``.

    Returns:
        The part; None if none differs, as when only the whole network with its own outputs does.
    """
    tf32 = engine is None or engine.build_options.tf32
    endings = _Endings(kind, network, inputs, tensor, rtol, atol, tf32)
    last, size, smaller = endings.position + 1, 1, 0
    while (failure := endings.failure(size)) is None:
        if size == last:
            return None
        smaller, size = size, min(2 * size, last)
    while size - smaller > 1:
        middle = (size + smaller) // 2
        tried = endings.failure(middle)
        failure, size, smaller = (tried, middle, smaller) if tried else (failure, size, middle)
    return failure


class _Endings:
    """The endings of a network that end with the step that computes a tensor.

    Attributes:
        position: the number of this step.
    """

    def __init__(
        self,
        kind: type[Peer],
        network: INetworkDefinition,
        inputs: Mapping[str, Any],
        tensor: ITensor,
        rtol: float | None,
        atol: float | None,
        tf32: bool,
    ) -> None:
        self._kind, self._network, self._rtol, self._atol, self._tf32 = kind, network, rtol, atol, tf32
        self._steps = require_valid(network).block.steps
        self.position = next(
            number for number, step in enumerate(self._steps) if tensor.producer in set(layers_of(step))
        )
        step = self._steps[self.position]
        self._ends = [tensor] if tensor in step.writes else [tensor for tensor in step.writes if tensor.type.is_tensor]
        self._values = values_of(kind, network, inputs)
        self._values.update(
            (tensor, np.asarray(inputs[tensor.name])) for tensor in network.inputs if tensor.type.is_tensor
        )

    def failure(self, size: int) -> Failure | None:
        """The difference in the part of the last ``size`` steps; None if there is none."""
        steps = Block(self._steps[self.position + 1 - size : self.position + 1]).needed(self._ends)
        part, inputs = self._part([layer for step in steps for layer in layers_of(step)])
        engine = compile(part, tf32=self._tf32)
        got = {name: _array(value) for name, value in engine(inputs).items()}
        result = agreements(got, self._kind(part)(inputs), self._rtol, self._atol, engine=engine)
        return None if all(agreement.agrees for agreement in result) else Failure(part, inputs, result)

    def _part(self, layers: Sequence[ILayer]) -> tuple[INetworkDefinition, dict[str, Array]]:
        """Some layers as a network, and arrays for its inputs."""
        inside = {tensor for layer in layers for tensor in layer.outputs}
        read = {
            tensor: None for layer in layers for tensor in layer.inputs if tensor is not None and tensor not in inside
        }
        copy = self._network.copy(shares_weights=True)
        vars(copy)["builder"] = None  # which has logged the warnings about the network
        for tensor in list(copy.outputs):
            copy.unmark_output(tensor)
        for tensor in self._ends:
            copy.mark_output(_copied(tensor, copy))
        kept, arrays = {copy.layers[layer.index] for layer in layers}, dict[str, Array]()
        for tensor in read:
            if isinstance(tensor.producer, IConstantLayer):
                kept.add(copy.layers[tensor.producer.index])
            elif tensor.is_network_input:
                arrays[tensor.name] = self._values[tensor]
            else:
                _cut(copy, _copied(tensor, copy), self._values[tensor], arrays, kept)
        keep(copy, kept)
        for tensor in [tensor for tensor in copy.inputs if tensor.name not in arrays]:
            copy.remove_tensor(tensor)
        return copy, arrays


def _cut(
    network: INetworkDefinition, tensor: ITensor, value: Array, arrays: dict[str, Array], kept: set[ILayer]
) -> None:
    """Replace a tensor by an input of the same type, or by a constant if it may decide shapes."""
    if tensor.type.is_float or tensor.type.is_string:
        name = tensor.name
        while any(tensor.name == name for tensor in network.inputs):
            name += "'"
        input_ = network.add_input(name, data_type(value.dtype), value.shape)
        arrays[name] = value
    else:
        layer = network.add_constant(value.shape, value)
        kept.add(layer)
        input_ = layer.outputs[0]
    for layer, position in list(tensor.uses):
        if layer in kept:
            layer.set_input(position, input_)


def _copied(tensor: ITensor, network: INetworkDefinition) -> ITensor:
    if tensor.producer is None:
        return network.inputs[tensor.position]
    return network.layers[tensor.producer.index].outputs[tensor.position]


def _array(value: Any) -> Any:
    return value if value is None or isinstance(value, list | dict) else np.asarray(value)
