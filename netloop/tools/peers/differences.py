"""The first tensor that differs between an engine and a peer."""

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from netloop.api.compare import Difference, Iterations, first_difference
from netloop.api.engine import ICudaEngine
from netloop.api.tolerance import Tolerances, note_on_products
from netloop.compiler.execution.probes import probed, record_elements
from netloop.compiler.recipe import Recipe
from netloop.model.check import require_valid
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.sources import IConstantLayer
from netloop.model.network import INetworkDefinition
from netloop.model.reference import Trace
from netloop.tools.peers.base import Peer
from netloop.values.types import Array

Elements = dict[ITensor, dict[Iterations, Array]]
"""Some elements of tensors, by the iterations of their loops."""


def difference_from(
    kind: type[Peer],
    network: INetworkDefinition,
    inputs: Mapping[str, Any],
    *,
    model: Path | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    engine: ICudaEngine | None = None,
) -> Difference | None:
    """The first difference between an engine and a peer, in running order; None if there is none.

    Both compute a network in which every tensor is an output, which each may round a little differently, and fuse less.

    Args:
        kind: the class of the peer.
        network: the network.
        inputs: an array for each input, by name.
        model: the ONNX file that the network was loaded from, for a peer that reads it: then the tensors outside of
            loops and conditionals that have names in the file are compared with those of the file itself, so that what
            an importer got wrong is found too. None for a model that netloop exports.
        rtol: the relative tolerance of floating-point numbers, as of ``compare``.
        atol: the absolute tolerance, added to the relative one.
        engine: an engine of the network, whose precision of products holds; None for that of ``netloop.compile``.

    Raises:
        NetworkError: the network is invalid, or cannot be exported.
        InputError: an input is missing, unknown, or of another type or shape.
        ExecutionError: the peer refuses the model, or fails.
    """
    expected, most_trips = _of_file(kind, network, inputs, model) if model is not None else ({}, None)
    if not expected:
        expected, most_trips = _of_export(kind, network, inputs)
    recipe = Recipe.of(()) if engine is None else engine.recipe
    recorded = record_elements(network, _counts(expected), inputs, most_trips, recipe)
    difference = first_difference(network, expected, recorded, Tolerances(rtol, atol, network, recipe))
    return None if difference is None else replace(difference, peer=kind.name)


def precision_note(engine: ICudaEngine) -> str:
    """The line about the precision of an engine's products; empty if it has none that its device rounds."""
    return note_on_products(Tolerances(None, None, engine.network, engine.recipe).products.name)


def values_of(kind: type[Peer], network: INetworkDefinition, inputs: Mapping[str, Any]) -> dict[ITensor, Array]:
    """The arrays of all tensors outside of loops and conditionals, as a peer computes them."""
    expected, _ = _of_export(kind, network, inputs, outside=True)
    return {tensor: elements[()] for tensor, elements in expected.items()}


def _of_export(
    kind: type[Peer], network: INetworkDefinition, inputs: Mapping[str, Any], outside: bool = False
) -> tuple[Elements, int | None]:
    """The elements of all tensors, or those outside of loops and conditionals, and the largest trip count of a loop."""
    wanted, most_trips = _wanted(network, inputs, outside)
    copy, stacked = probed(network, _counts(wanted))
    outputs = kind(copy)(inputs)
    elements: Elements = {}
    for tensor, output in stacked.items():
        value = outputs[output.name]
        if isinstance(value, np.ndarray | np.generic):
            elements[tensor] = {at: np.asarray(value)[(*at, ...)] for at in wanted[tensor]}
    return elements, most_trips


def _wanted(
    network: INetworkDefinition, inputs: Mapping[str, Any], outside: bool
) -> tuple[dict[ITensor, list[Iterations]], int | None]:
    """The elements to ask for: in loops those that the reference needs, since only a run shows how many there are."""
    block = require_valid(network).block
    here = [tensor for step in block.steps for tensor in step.writes if not isinstance(tensor.producer, IConstantLayer)]
    if outside or not (network.loops or network.conditionals):
        return {loop: [()] for loop in here if loop.type.is_tensor}, None
    trace = Trace(network, inputs)
    iterations: dict[ITensor, list[Iterations]] = {}
    for layer in network.layers:
        for tensor in () if isinstance(layer, IConstantLayer) else layer.outputs:
            if tensor.type.is_tensor and trace[tensor].computed and (elements := trace[tensor].needed()):
                iterations[tensor] = list(elements)
    return iterations, trace.most_trips


def _counts(elements: Mapping[ITensor, Any]) -> dict[ITensor, list[int]]:
    return {tensor: [max(entry) + 1 for entry in zip(*at, strict=True)] for tensor, at in elements.items()}


def _of_file(
    kind: type[Peer], network: INetworkDefinition, inputs: Mapping[str, Any], model: Path
) -> tuple[Elements, int | None]:
    """The tensors of an ONNX file that the network has under the same name, outside of loops and conditionals."""
    if model.suffix.lower() != ".onnx" or model.suffix.lower() not in kind.reads:
        return {}, None
    block = require_valid(network).block
    named = {tensor.name: tensor for step in block.steps for tensor in step.writes if tensor.type.is_tensor}
    onnx: Any = import_module("onnx")
    proto = onnx.load(str(model))
    outputs = {name.name for name in proto.graph.output}
    marked = [name for node in proto.graph.node for name in node.output if name in named]
    proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in marked if name not in outputs)
    with tempfile.TemporaryDirectory(prefix="netloop-") as folder:
        file = Path(folder) / "marked.onnx"
        onnx.save(proto, str(file), save_as_external_data=proto.ByteSize() > 1 << 30, location="weights")
        copy, stacked = probed(network, {named[name]: [] for name in marked})
        for tensor, output in stacked.items():
            output.name = tensor.name  # by which the peer is asked
        values = kind(copy, file)(inputs)
    return {named[name]: {(): np.asarray(values[name])} for name in marked if values[name] is not None}, None
