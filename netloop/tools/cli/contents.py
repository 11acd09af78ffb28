"""What is in a network and an engine, in the types of JSON."""

from __future__ import annotations

from typing import Any

import netloop as trt
from netloop.model.check import require_valid
from netloop.model.graph.layer import ILayer
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.loop import ILoop
from netloop.model.nest import LoopStep, layers_of, walk


def of_network(network: trt.INetworkDefinition) -> dict[str, Any]:
    """Inputs, outputs, layers, loops, conditionals and weights.

    Raises:
        NetworkError: the network is invalid.
    """
    scopes, block = require_valid(network)
    steps = {step.loop: step for step in walk(block) if isinstance(step, LoopStep)}
    constants = [each for each in network.layers if isinstance(each, trt.IConstantLayer)]
    return {
        "name": network.name,
        "inputs": [_tensor(each) for each in network.inputs],
        "outputs": [_tensor(each) for each in network.outputs],
        "layers": [_layer(each, scopes) for each in network.layers],
        "loops": [_loop(each, scopes, steps.get(each)) for each in network.loops],
        "conditionals": [each.name for each in network.conditionals],
        "weights": [{**_tensor(each.outputs[0]), "bytes": each.weights.nbytes} for each in constants],
        "elements": sum(each.weights.size for each in constants),
        "bytes": sum(each.weights.nbytes for each in constants),
    }


def of_engine(engine: trt.ICudaEngine) -> dict[str, Any]:
    """The form of each loop and what the passes changed, in the latest program of an engine."""
    strategies = engine.loop_strategies.items()
    return {
        "strategies": [{"name": name, "strategy": each.name, "why": each.why} for name, each in strategies],
        "passes": [{"name": each.by, "done": each.what} for each in engine.notes],
    }


def _tensor(tensor: ITensor) -> dict[str, Any]:
    return {"name": tensor.name, "type": str(tensor.type)}


def _layer(layer: ILayer, scopes: Any) -> dict[str, Any]:
    chain = scopes.chain_of(layer.outputs[0]) if layer.outputs else ()
    return {
        "name": layer.name,
        "kind": layer.LABEL,
        "inputs": [None if each is None else each.name for each in layer.inputs],
        "outputs": [_tensor(each) for each in layer.outputs],
        "loops": [each.name for each in chain],
    }


def _loop(loop: ILoop, scopes: Any, step: LoopStep | None) -> dict[str, Any]:
    around = scopes.chain_around(loop)
    inside = [] if step is None else [each for each in layers_of(step) if each not in set(step.layers)]
    kinds = [type(each) for each in loop.layers]
    limits = [each for each in loop.layers if isinstance(each, trt.ITripLimitLayer)]
    return {
        "name": loop.name,
        "inside": around[-1].name if around else None,
        "limits": [each.kind.name for each in limits],
        "recurrences": kinds.count(trt.IRecurrenceLayer),
        "iterators": kinds.count(trt.IIteratorLayer),
        "loop_outputs": kinds.count(trt.ILoopOutputLayer),
        "layers": len(inside),
    }
