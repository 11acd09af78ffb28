"""The exporter of networks as ONNX graphs, with a finding for each layer that ONNX cannot express."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from netloop.formats.onnx_graph.assertions import is_needless
from netloop.formats.onnx_graph.conditional import export_conditional
from netloop.formats.onnx_graph.exporter_table import EXPORTERS
from netloop.formats.onnx_graph.graph import OnnxGraph, Value
from netloop.formats.onnx_graph.loop import export_iterator, export_loop
from netloop.formats.onnx_graph.neutral import unchanged_input
from netloop.formats.onnx_graph.node_builder import NodeBuilder
from netloop.formats.onnx_graph.value_scope import ValueScope
from netloop.model.check import ValidatedNetwork
from netloop.model.graph import ILayer, ITensor
from netloop.model.graph.infer import known_outputs
from netloop.model.layers.assertion import IAssertionLayer
from netloop.model.layers.conditional import IIfConditionalInputLayer
from netloop.model.layers.loop import IIteratorLayer
from netloop.model.nest import Block, IfStep, LayerStep, LoopStep, Step
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import Finding, LayerError, NetworkError
from netloop.values.types import LARGEST_KNOWN_VALUE, Array, TensorType

MOST_COPIES = 1 << 15
"""The most copies of layers. The layers that compute a WHILE limit are exported twice, so nesting doubles them."""

DEEPEST = 24
"""The deepest nesting of graphs. Protobuf readers stop at 100 nested messages, and a nested graph takes three."""


class NetworkExporter:
    """Exports a network as a graph.

    Args:
        network: the network.
        validated: its check results.
        drop_assertions: whether to leave assertions out.
        format: the name of the format in messages.
        code: the code of the findings.
    """

    def __init__(
        self,
        network: INetworkDefinition,
        validated: ValidatedNetwork,
        drop_assertions: bool,
        format: str = "ONNX",
        code: str = "NL731",
    ) -> None:
        self.types = network.types
        self._network = network
        self._block = validated.block
        self._drop_assertions = drop_assertions
        self._problems: dict[ILayer | ITensor, Finding] = {}
        self._format, self._code = format, code
        self._layers = 0

    def graph(self) -> OnnxGraph:
        """Return the graph of the whole network.

        Raises:
            NetworkError: it cannot be expressed; the error lists all reasons.
        """
        self._check_depth()
        self._check_assertions()
        self._check_names()
        graph = OnnxGraph(self._network.name)
        scope = ValueScope(graph)
        for tensor in self._network.inputs:
            scope.values[tensor] = graph.add_input(tensor.name, self.types[tensor])
        self.export_steps(self._block.steps, scope)
        for tensor in self._network.outputs:
            value = self.read(tensor, scope)
            if any(value is other for other, _ in graph.inputs) and value.name == tensor.name:
                graph.outputs.append((value, self.types[tensor]))
            else:
                graph.add_output(value, self.types[tensor], tensor.name).name = tensor.name
        if self._problems:
            raise NetworkError(*self._problems.values())
        graph.prune()
        return graph

    def _check_depth(self) -> None:
        if any(depth > DEEPEST for _, depth in _all_blocks(self._block)):
            what = f"loops and conditionals of {self._network.name!r} are nested more than {DEEPEST} deep"
            why, fix = "readers of protobuf files stop at that depth", "reduce the nesting, or save a plan"
            raise NetworkError(Finding(self._code, what, "", why, fix, at=self._network))

    def _check_assertions(self) -> None:
        for block, _ in _all_blocks(self._block) if not self._drop_assertions else ():
            layers = [step.layer for step in block.steps if isinstance(step, LayerStep)]
            for layer in layers:
                if isinstance(layer, IAssertionLayer) and not is_needless(layer, self.types, layers):
                    self._problems[layer] = self._not_written(layer)

    def _not_written(self, layer: IAssertionLayer) -> Finding:
        return layer.finding(
            self._code,
            f"the assertion {layer.name!r} cannot be written as {self._format}",
            f"{self._format} has no operator that ends a run",
            "leave the assertions out: drop_assertions=True",
        )

    def _check_names(self) -> None:
        for tensor in (*self._network.inputs, *self._network.outputs):
            if not tensor.name:
                what = f"an {'output' if tensor.producer else 'input'} of {self._network.name!r} has no name"
                where = tensor.producer.where if tensor.producer else ""
                why = f"{self._format} identifies the inputs and outputs of a model by name"
                self._problems[tensor] = Finding(self._code, what, where, why, "set the name of the tensor", at=tensor)

    # ------------------------------------------------------------------ steps

    def export_steps(self, steps: Sequence[Step], scope: ValueScope) -> None:
        """Add nodes for steps."""
        for step in steps:
            if isinstance(step, LoopStep):
                export_loop(self, step, scope)
            elif isinstance(step, IfStep):
                export_conditional(self, step, scope)
            else:
                self._export_layer(step, scope)

    def read(self, tensor: ITensor, scope: ValueScope) -> Value:
        """The value of a tensor in a scope; a constant if it is one at compile time."""
        constant = self._known(tensor)
        return scope.values[tensor] if constant is None else NodeBuilder.constant(constant)

    def _known(self, tensor: ITensor) -> Array | None:
        """The value of a compile-time constant, or of a tensor without elements."""
        type = self.types[tensor]
        return np.zeros(type.shape, type.dtype) if type.volume == 0 else type.value

    def builder(self, scope: ValueScope, layer: ILayer | None = None, name: str = "") -> NodeBuilder:
        """Return a builder of nodes in a scope."""
        return NodeBuilder(scope.graph, self.types, layer, name, scope.values)

    def _export_layer(self, step: LayerStep, scope: ValueScope) -> None:
        layer = step.layer
        self._layers += 1
        if self._layers > len(self._network.layers) + MOST_COPIES:
            raise NetworkError(self._too_large())
        if layer.outputs and all(self._known(tensor) is not None for tensor in layer.outputs):
            return
        unchanged = unchanged_input(layer, self.types)
        if unchanged is not None:
            scope.values[layer.outputs[0]] = self.read(unchanged, scope)
            return
        try:
            values = self._outputs_of(layer, scope)
        except LayerError as error:
            self._problems.setdefault(layer, layer.finding_of(error, self._code))
            values = tuple(Value(self.types[tensor].dtype) for tensor in layer.outputs)
        for tensor, value in zip(layer.outputs, values, strict=True):
            value.name = value.name or tensor.name
            value.shape = self.types[tensor].shape
            scope.values[tensor] = value

    def _too_large(self) -> Finding:
        what = f"{self._network.name!r} needs more than {MOST_COPIES} copies of its layers"
        why = "the layers that compute a WHILE limit are exported twice, and so double with each loop around it"
        return Finding(self._code, what, "", why, "move loops out of the computation of WHILE limits", at=self._network)

    def _outputs_of(self, layer: ILayer, scope: ValueScope) -> tuple[Value, ...]:
        if isinstance(layer, IIteratorLayer):
            return (export_iterator(self, layer, scope),)
        if isinstance(layer, IIfConditionalInputLayer):
            return (self.read(layer.tensor(0), scope),)
        if isinstance(layer, IAssertionLayer):
            return ()
        return self.translate(
            layer, scope, [None if tensor is None else self.read(tensor, scope) for tensor in layer.inputs]
        )

    def translate(self, layer: ILayer, scope: ValueScope, inputs: Sequence[Value | None]) -> tuple[Value, ...]:
        """Add the nodes of a layer; return its outputs, as constants if its inputs are constants here.

        Raises:
            LayerError: ONNX cannot express the layer.
        """
        constants = known_outputs(layer, [self._type_here(*pair) for pair in zip(layer.inputs, inputs, strict=True)])
        if constants is not None:
            return tuple(map(NodeBuilder.constant, constants))
        exporter = EXPORTERS.find(type(layer))
        if exporter is None:
            what = f"{layer.name!r} cannot be written as {self._format}"
            raise LayerError(what, "there are no operators for its kind")
        result = exporter(layer, self.builder(scope, layer), *inputs)
        return result if isinstance(result, tuple) else (result,)

    def _type_here(self, tensor: ITensor | None, value: Value | None) -> TensorType | None:
        """The type of a tensor, with its value where it is a constant: a state is one before the first iteration."""
        if tensor is None or value is None:
            return None
        type, array = self.types[tensor], value.array
        if array is None or not 0 < array.nbytes <= LARGEST_KNOWN_VALUE:
            return type
        return replace(type, value=array, shape=array.shape)


def _all_blocks(block: Block) -> Iterator[tuple[Block, int]]:
    """A block and all blocks nested in it, with their depths. It ends at a depth that no file has."""
    blocks = [(block, 0)]
    while blocks:
        block, depth = blocks.pop()
        yield block, depth
        if depth <= DEEPEST:
            blocks += [(inner, depth + 1) for step in block.steps for inner in _blocks(step)]


def _blocks(step: Step) -> Sequence[Block]:
    """The blocks of a step."""
    if isinstance(step, LayerStep):
        return ()
    return step.branches if isinstance(step, IfStep) else (step.body,)
