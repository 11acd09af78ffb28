"""The contents of a network and an engine, in the types of JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import netloop as trt
from netloop.model.check import require_valid
from netloop.model.graph.layer import ILayer
from netloop.model.graph.layer_text import value_text
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
    constants = [layer for layer in network.layers if isinstance(layer, trt.IConstantLayer)]
    return {
        "name": network.name,
        "inputs": [_tensor(tensor) for tensor in network.inputs],
        "outputs": [_tensor(tensor) for tensor in network.outputs],
        "layers": [_layer(layer, scopes) for layer in network.layers],
        "loops": [_loop(loop, scopes, steps.get(loop)) for loop in network.loops],
        "conditionals": [conditional.name for conditional in network.conditionals],
        "weights": [{**_tensor(constant.outputs[0]), "bytes": constant.weights.nbytes} for constant in constants],
        "elements": sum(constant.weights.size for constant in constants),
        "bytes": sum(constant.weights.nbytes for constant in constants),
    }


def of_engine(engine: trt.ICudaEngine) -> dict[str, Any]:
    """The strategy of each loop, the changes of the passes, the precision and the launches of the latest program."""
    strategies = engine.loop_strategies.items()
    return {
        "strategies": [{"name": name, "strategy": strategy.name, "why": strategy.why} for name, strategy in strategies],
        "passes": [{"name": note.by, "done": note.what} for note in engine.notes],
        "products": engine.product_precision,
        "launches": None if engine.launches is None else asdict(engine.launches),
    }


def _tensor(tensor: ITensor) -> dict[str, Any]:
    return {"name": tensor.name, "type": str(tensor.type)}


def _layer(layer: ILayer, scopes: Any) -> dict[str, Any]:
    chain = scopes.chain_of(layer.outputs[0]) if layer.outputs else ()
    return {
        "name": layer.name,
        "kind": layer.LABEL,
        "attributes": {name: value_text(getattr(layer, name)) for name in layer.ATTRIBUTES},
        "inputs": [None if tensor is None else tensor.name for tensor in layer.inputs],
        "outputs": [_tensor(tensor) for tensor in layer.outputs],
        "loops": [value.name for value in chain],
    }


def _loop(loop: ILoop, scopes: Any, step: LoopStep | None) -> dict[str, Any]:
    around = scopes.chain_around(loop)
    inside = [] if step is None else [layer for layer in layers_of(step) if layer not in set(step.layers)]
    kinds = [type(layer) for layer in loop.layers]
    limits = [layer for layer in loop.layers if isinstance(layer, trt.ITripLimitLayer)]
    return {
        "name": loop.name,
        "inside": around[-1].name if around else None,
        "limits": [limit.kind.name for limit in limits],
        "recurrences": kinds.count(trt.IRecurrenceLayer),
        "iterators": kinds.count(trt.IIteratorLayer),
        "loop_outputs": kinds.count(trt.ILoopOutputLayer),
        "layers": len(inside),
    }
