"""Networks made smaller, one change after the other, as long as a fault stays."""

import time
from collections.abc import Callable, Iterator

import numpy as np

import netloop as trt
from netloop.formats.shared.pruning import keep_live
from netloop.model.graph.layer import ILayer
from netloop.model.graph.tensor import ITensor
from netloop.model.nest import live_layers

IsFaulty = Callable[[trt.INetworkDefinition], bool]


def smallest(network: trt.INetworkDefinition, is_faulty: IsFaulty, seconds: float) -> trt.INetworkDefinition:
    """The network, or a smaller one that is faulty too, found in so many seconds."""
    end = time.monotonic() + seconds
    while True:
        for other in smaller(network):
            if time.monotonic() > end:
                return network
            if not any(finding.severity is trt.Severity.ERROR for finding in trt.check(other)) and is_faulty(other):
                network = other
                break
        else:
            return network


def smaller(network: trt.INetworkDefinition) -> Iterator[trt.INetworkDefinition]:
    """Networks with one change: fewer outputs, or an input or a constant instead of what a layer makes of it."""
    places = range(len(network.outputs))
    if len(places) > 1:
        yield from (_with_outputs(network, [place]) for place in places)
        yield from (_with_outputs(network, [other for other in places if other != place]) for place in places)
    for layer in sorted(live_layers(network), key=lambda layer: layer.index, reverse=True):
        for tensor in [] if isinstance(layer, trt.IConstantLayer) else layer.outputs:
            replaced = (_replaced(network, tensor, source) for source in _sources(layer, tensor))
            yield from (other for other in replaced if other is not None)


def _with_outputs(network: trt.INetworkDefinition, places: list[int]) -> trt.INetworkDefinition:
    copy = network.copy()
    for place, tensor in enumerate(list(copy.outputs)):
        if place not in places:
            copy.unmark_output(tensor)
    keep_live(copy)
    return copy


def _sources(layer: ILayer, tensor: ITensor) -> list[ITensor | np.ndarray]:
    """What has the type of an output: inputs of its layer, what a state starts from, and a constant."""
    inputs = [source for source in layer.inputs if source is not None]
    if isinstance(layer, trt.ILoopOutputLayer):
        first = inputs[0].producer
        inputs += [] if first is None else [source for source in first.inputs if source is not None]
    same = [source for source in inputs if (source.dtype, source.shape) == (tensor.dtype, tensor.shape)]
    fixed = [] if not tensor.type.is_tensor or -1 in tuple(tensor.shape) else [np.ones(tensor.shape, tensor.type.dtype)]
    return [*dict.fromkeys(same), *fixed]


def _replaced(
    network: trt.INetworkDefinition, tensor: ITensor, source: ITensor | np.ndarray
) -> trt.INetworkDefinition | None:
    """The network with another tensor wherever one is read; None if it cannot be written so."""
    copy = network.copy()
    old = copy.layers[tensor.producer.index].outputs[tensor.position]
    if isinstance(source, np.ndarray):
        new = copy.add_constant(source.shape, source).get_output(0)
    elif source.producer is None:
        new = copy.inputs[source.position]
    else:
        new = copy.layers[source.producer.index].outputs[source.position]
    try:
        for layer, position in list(old.uses):
            layer.set_input(position, new)
        if old.is_network_output:
            copy.unmark_output(old)
            if not new.is_network_output:
                copy.mark_output(new)
        keep_live(copy)
    except (trt.NetloopError, ValueError, TypeError):
        return None
    return copy if copy.outputs else None
