"""From the steps of a network to a graph, and all reasons why a layer cannot be in one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from netloop.check import Sound
from netloop.diagnostics import Finding, LayerError, NetworkError
from netloop.graph.layer import ILayer
from netloop.graph.tensor import ITensor
from netloop.layers.assertion import IAssertionLayer
from netloop.layers.conditional import IIfConditionalInputLayer
from netloop.layers.loop import IIteratorLayer
from netloop.nest import IfStep, LayerStep, LoopStep, Step
from netloop.network import INetworkDefinition
from netloop.onnx.save.conditional import export_conditional
from netloop.onnx.save.graph import Graph, Value
from netloop.onnx.save.loop import export_iterator, export_loop
from netloop.onnx.save.make import Make
from netloop.onnx.save.scope import Scope
from netloop.onnx.save.table import EXPORTERS
from netloop.types import Array

CODE = "NL731"
DEEPEST = 24
"""Protobuf's readers end at messages nested 100 deep, and a graph takes three of them."""


class Walk:
    """The graph of a network in the making.

    Attributes:
        types: the types of the tensors of the network.
        drop_assertions: whether assertions are left out.
        problems: what ONNX cannot express.
    """

    def __init__(self, network: INetworkDefinition, sound: Sound, drop_assertions: bool) -> None:
        self.network = network
        self.types = network.types
        self.block = sound.block
        self.drop_assertions = drop_assertions
        self.problems: dict[ILayer | None, Finding] = {}

    def graph(self) -> Graph:
        """The graph of the whole network.

        Raises:
            NetworkError: ONNX cannot express it, for all of the reasons that are given.
        """
        graph = Graph(self.network.name)
        scope = Scope(graph)
        for tensor in self.network.inputs:
            scope.values[tensor] = graph.take(tensor.name, self.types[tensor])
        self.run(self.block.steps, scope)
        for tensor in self.network.outputs:
            value = self.read(tensor, scope)
            if any(value is each for each, _ in graph.inputs) and value.name == tensor.name:
                graph.outputs.append((value, self.types[tensor]))
            else:
                graph.give(value, self.types[tensor], tensor.name).name = tensor.name
        self._check_depth(graph)
        if self.problems:
            raise NetworkError(*self.problems.values())
        return graph

    def _check_depth(self, graph: Graph) -> None:
        if max(depth for _, depth in graph.walk()) > DEEPEST:
            what = f"loops and conditionals of {self.network.name!r} are nested more than {DEEPEST} deep"
            why = "the readers of ONNX files end there, as they are protobufs"
            self.problems[None] = Finding(CODE, what, "", why, "nest them less deep", at=self.network)

    # ------------------------------------------------------------------ steps

    def run(self, steps: Sequence[Step], scope: Scope) -> None:
        """Add nodes for some steps."""
        for step in steps:
            if isinstance(step, LoopStep):
                export_loop(self, step, scope)
            elif isinstance(step, IfStep):
                export_conditional(self, step, scope)
            else:
                self._run_layer(step, scope)

    def read(self, tensor: ITensor, scope: Scope) -> Value:
        """The value of a tensor; a constant if it follows from constants and shapes."""
        known = self._known(tensor)
        return scope.value(tensor) if known is None else Make.constant(known)

    def _known(self, tensor: ITensor) -> Array | None:
        """The value of a tensor that follows from constants and shapes alone, as that of one without elements does."""
        type = self.types[tensor]
        return np.zeros(type.shape, type.dtype) if type.volume == 0 else type.value

    def make(self, scope: Scope, layer: ILayer | None = None, name: str = "") -> Make:
        """What adds nodes where a scope is."""
        return Make(scope.graph, self.types, layer, name)

    def _run_layer(self, step: LayerStep, scope: Scope) -> None:
        layer = step.layer
        if layer.outputs and all(self._known(each) is not None for each in layer.outputs):
            return
        try:
            made = self._made(layer, scope)
        except LayerError as error:
            self.problems.setdefault(layer, layer.finding_of(error, CODE))
            made = tuple(Value(self.types[each].dtype) for each in layer.outputs)
        for tensor, value in zip(layer.outputs, made, strict=True):
            value.name = value.name or tensor.name
            scope.values[tensor] = value

    def _made(self, layer: ILayer, scope: Scope) -> tuple[Value, ...]:
        if isinstance(layer, IIteratorLayer):
            return (export_iterator(self, layer, scope),)
        if isinstance(layer, IIfConditionalInputLayer):
            return (self.read(layer.inputs[0], scope),)  # pyright: ignore[reportArgumentType]
        if isinstance(layer, IAssertionLayer):
            return self._assertion(layer)
        exporter = EXPORTERS.get(type(layer))
        if exporter is None:
            why = REFUSED.get(type(layer).__name__, "it is not known what ONNX operators it is")
            raise LayerError(f"{layer.name!r} cannot be written as ONNX", why)
        inputs = [None if each is None else self.read(each, scope) for each in layer.inputs]
        made = exporter(layer, self.make(scope, layer), *inputs)
        return made if isinstance(made, tuple) else (made,)

    def _assertion(self, layer: IAssertionLayer) -> tuple[Value, ...]:
        condition = layer.inputs[0]
        assert condition is not None
        known = self.types[condition].value
        if not self.drop_assertions and (known is None or not layer.holds(known)):
            raise LayerError(
                f"the assertion {layer.name!r} cannot be written as ONNX",
                "ONNX has no operator that ends a run",
                "leave the assertions out: drop_assertions=True",
            )
        return ()


REFUSED: dict[str, str] = {}
"""The kinds of layers that have no exporter, and why."""
