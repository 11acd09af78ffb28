"""From the graph of a model to layers.

Each graph and each function has a scope of its own: a graph inside a node sees the names around it, a function sees
nothing but its inputs. A node that has no meaning makes its outputs broken, and what reads them is left out; at the end
all that is wrong is told at once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

import onnx

from netloop.diagnostics import LayerError, ModelError, did_you_mean, reason, require
from netloop.formats import ImportErrors, InputNotImported, Unimported, keep_live, mark_output, name_layers, name_tensor
from netloop.formulas import FormulaBuilder
from netloop.graph.tensor import ITensor
from netloop.network import INetworkDefinition
from netloop.onnx.importer.call import Call, Operator, Result, Value
from netloop.onnx.importer.function_calls import MOST_NODES, domain_of
from netloop.onnx.importer.functions import body_of, default_attributes
from netloop.onnx.importer.inputs import Inputs
from netloop.onnx.importer.model import Model, opsets_of
from netloop.onnx.importer.node import OnnxNode
from netloop.onnx.importer.operator_table import entered
from netloop.onnx.importer.operators import news, version_for
from netloop.onnx.importer.scope import Meaning, NameScope
from netloop.onnx.tensors import array_of, dense_of

DEEPEST = 32
"""Graphs and functions inside each other go no deeper."""


class Importer:
    """Makes layers of a model.

    Args:
        model: the model.
        network: the network that it becomes part of.
        input_shapes: shapes for some of its inputs, instead of those that it declares.
        as_inputs: the initializers that are to be inputs.

    Attributes:
        outputs: what the outputs of each node of the model stand for, by the label of the node.
    """

    def __init__(
        self,
        model: Model,
        network: INetworkDefinition,
        input_shapes: Mapping[str, Sequence[int]] | None = None,
        as_inputs: Collection[str] = (),
    ) -> None:
        self._model = model
        self._inputs = Inputs(model.proto.graph, input_shapes or {}, frozenset(as_inputs))
        self._make = FormulaBuilder(network)
        self._errors = ImportErrors(model.name, damage="NL745")
        self._nodes = self._outermost = 0
        self.outputs: dict[str, Sequence[Meaning]] = {}

    def add(self) -> None:
        """Add the layers, inputs and outputs of the model to the network.

        Raises:
            ModelError: the model has no meaning as one; all that is wrong is told.
        """
        graph, network = self._model.proto.graph, self._make.network
        before = len(network.layers)
        network.name = graph.name
        scope = NameScope(self._model.opsets)
        self._declare(scope)
        self._run(graph, scope)
        for proto in graph.output:
            value = self._read(proto.name, scope, "the outputs")
            if isinstance(value, ITensor):
                self._mark(proto.name, value)
        self._errors.raise_all()
        keep_live(network, before)

    def _declare(self, scope: NameScope) -> None:
        """Add the inputs of the model."""
        with self._errors.collect("the inputs"):
            self._inputs.check_names()
        for proto in self._inputs.protos:
            scope.values[proto.name] = Unimported()
            with self._errors.collect(f"input {proto.name!r}"):
                scope.values[proto.name] = self._inputs.add(self._make.network, proto)

    def _mark(self, name: str, tensor: ITensor) -> None:
        """Make a tensor an output of the network."""
        if all(each.name != name for each in self._make.network.outputs):
            with self._errors.collect(f"output {name!r}"):
                mark_output(self._make, tensor, name, _metadata(name))

    # ------------------------------------------------------------------ graphs

    def _run(self, graph: onnx.GraphProto | onnx.FunctionProto, scope: NameScope) -> None:
        """Add the nodes of a graph to the network."""
        if scope.depth > DEEPEST:
            what = f"graphs and functions are more than {DEEPEST} inside each other"
            raise ModelError(self._errors.finding("NL741", what))
        if isinstance(graph, onnx.GraphProto):
            self._take_initializers(graph, scope)
        for number, proto in enumerate(graph.node):
            self._nodes += 1
            self._outermost = number if scope.depth == 0 else self._outermost
            if self._nodes > MOST_NODES:
                what = f"the model stands for more than {MOST_NODES} nodes"
                raise ModelError(self._errors.finding("NL741", what))
            node = self._node(proto, number, scope)
            values = self._take_node(node, scope)
            if scope.depth == 0:
                self.outputs[node.label] = values

    def subgraph(self, proto: onnx.GraphProto, scope: NameScope, inputs: Sequence[Value]) -> list[Value]:
        """The outputs of a graph inside a node, once its nodes are added to the network.

        Raises:
            LayerError: it does not have such inputs.
            InputNotImported: something in it has no meaning, and is told.
        """
        names = [each.name for each in proto.input]
        require(len(set(names)) == len(names), f"two inputs of the graph {proto.name!r} have one name")
        require(len(inputs) == len(names), f"the graph {proto.name!r} has {len(names)} inputs, not {len(inputs)}")
        inner = scope.inside(dict(zip(names, inputs, strict=True)))
        self._run(proto, inner)
        outputs = [self._read(each.name, inner, f"the outputs of {proto.name!r}") for each in proto.output]
        found = [each for each in outputs if isinstance(each, ITensor)]
        if len(found) < len(outputs):
            raise InputNotImported
        return found

    def _take_initializers(self, graph: onnx.GraphProto, scope: NameScope) -> None:
        directory = self._model.directory
        dense = [(each.name, partial(array_of, each, directory)) for each in graph.initializer]
        sparse = [(each.values.name, partial(dense_of, each, directory)) for each in graph.sparse_initializer]
        taken = self._inputs.names if scope.depth == 0 else frozenset[str]()
        for name, decode in [*dense, *sparse]:
            if name in taken:
                continue
            with self._errors.collect(f"initializer {name!r}"):
                self._check_new(name, scope)
                scope.values[name] = Unimported()
                array = decode()
                layer = self._make.network.add_constant(array.shape, array)
                layer.name, layer.metadata = name, f"[ONNX Initializer: {name}]"
                scope.values[name] = name_tensor(layer.outputs[0], name)

    # ------------------------------------------------------------------ nodes

    def _node(self, proto: onnx.NodeProto, number: int, scope: NameScope) -> OnnxNode:
        version = scope.opsets.get(domain_of(proto.domain), 1)
        directory = self._model.directory
        return OnnxNode(proto, version, number, scope.bindings, directory, self._outermost, scope.functions)

    def _take_node(self, node: OnnxNode, scope: NameScope) -> Sequence[Meaning]:
        """What the outputs of a node stand for, once its layers are there."""
        before = len(self._make.network.layers)
        values: Sequence[Meaning] = [Unimported()] * len(node.proto.output)
        with self._errors.collect(f"node {node.label!r} ({node.operator})", node):
            node.check()
            values = self._outputs_of(node, scope)
        name_layers(self._make.network, before, node.label, _metadata(node.label))
        for name, value in zip(node.proto.output, values, strict=False):
            if name:
                with self._errors.collect(f"node {node.label!r} ({node.operator})", node):
                    self._check_new(name, scope)
                scope.values[name] = name_tensor(value, name) if isinstance(value, ITensor) else value
        return values

    def _outputs_of(self, node: OnnxNode, scope: NameScope) -> Sequence[Meaning]:
        read = [self._read(each, scope, f"node {node.label!r}", node) if each else None for each in node.proto.input]
        inputs = [each for each in read if not isinstance(each, Unimported)]
        if len(inputs) < len(read):
            raise InputNotImported
        function = self._function(node)
        if function is None:
            return self._call(node, inputs, scope)
        return _checked(node, function(Call(node, self._make, lambda name: Inner(self, node, name, scope)), *inputs))

    def _function(self, node: OnnxNode) -> Operator | None:
        """What makes layers of a node; None if the body of a function stands for it."""
        version = version_for(node)
        if node.key in self._model.functions or version is None:
            return None
        new = news(node, version)
        if new:
            raise LayerError(f"{node.operator} has {new}", f"netloop knows it as of version {version}", "", "NL744")
        return entered(node.domain, node.op)[version]

    def _call(self, node: OnnxNode, inputs: Sequence[Value | None], scope: NameScope) -> Sequence[Meaning]:
        """The outputs of a function, once its nodes are added to the network."""
        body = self._model.functions.get(node.key) or body_of(node, inputs)
        if body is None:
            raise LayerError(f"netloop has no operator {node.operator}", reason("NL744"), "", "NL744")
        require(len(inputs) <= len(body.input), f"{node.op!r} takes {len(body.input)} inputs, not {len(inputs)}")
        given = [*inputs, *[None] * (len(body.input) - len(inputs))]
        inner = NameScope(
            {**scope.opsets, **opsets_of(body.opset_import)},
            bindings={**default_attributes(body), **node.given},
            functions=(*scope.functions, node.op),
            depth=scope.depth + 1,
            values=dict(zip(body.input, given, strict=True)),
        )
        self._run(body, inner)
        wanted = zip(body.output, node.proto.output, strict=False)
        return [self._read(name, inner, f"the outputs of {body.name!r}") if used else None for name, used in wanted]

    # ------------------------------------------------------------------ names

    def _read(self, name: str, scope: NameScope, reader: str, node: OnnxNode | None = None) -> Meaning:
        holder = scope.holder(name)
        if holder is not None:
            return holder.values[name]
        what = f"{reader} reads {name!r}, which nothing before it gives"
        self._errors.add("NL745", what, did_you_mean(name, scope.names()), node)
        return Unimported()

    def _check_new(self, name: str, scope: NameScope) -> None:
        if name in scope.values:
            raise LayerError(f"{name!r} is given a value twice", reason("NL745"), "", "NL745")


class Inner:
    """A graph inside a node.

    Attributes:
        proto: the graph.
    """

    def __init__(self, importer: Importer, node: OnnxNode, name: str, scope: NameScope) -> None:
        self.proto: onnx.GraphProto = node.attribute(name)
        self._importer = importer
        self._scope = scope

    def __call__(self, *inputs: Value) -> list[Value]:
        """Add the nodes of the graph to the network; the values of its outputs."""
        return self._importer.subgraph(self.proto, self._scope, inputs)


def _metadata(name: str) -> str:
    return f"[ONNX Layer: {name}]"


def _checked(node: OnnxNode, made: Result) -> Sequence[Value | None]:
    """The outputs of a node, all of which have types."""
    outputs = [made] if isinstance(made, ITensor) else list(made)
    for tensor in outputs:
        if tensor is not None:
            assert tensor.type
    named = len(node.proto.output)
    require(len(outputs) >= named, f"the node names {named} outputs, and there are {len(outputs)}")
    return outputs
