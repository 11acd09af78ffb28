"""The ONNX importer: a model's graph, node by node, to layers.

Each graph and each function has a scope of its own: a graph inside a node may read the names around it, a function only
its inputs.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

import onnx

from netloop.diagnostics import LayerError, ModelError, did_you_mean, quoted, reason, require
from netloop.formats import Unimported
from netloop.formats.import_errors import ImportErrors, InputNotImported
from netloop.formats.importer import DEEPEST, ModelImporter, all_imported, name_tensor
from netloop.graph.tensor import ITensor
from netloop.network import INetworkDefinition
from netloop.onnx.importer.alternatives import Alternatives, Value, last_readers, merge_finished, merged, names_read
from netloop.onnx.importer.assumptions import Assumptions
from netloop.onnx.importer.call import Call, Subgraph
from netloop.onnx.importer.function_calls import domain_of
from netloop.onnx.importer.functions import body_of, default_attributes
from netloop.onnx.importer.inputs import ModelInputs
from netloop.onnx.importer.model import Model, opsets_of
from netloop.onnx.importer.node import ImportedNode
from netloop.onnx.importer.operator_table import FIXES
from netloop.onnx.importer.operators import function_of
from netloop.onnx.importer.scope import NameScope
from netloop.onnx.tensors import array_of, dense_of
from netloop.types import Array


class OnnxImporter(ModelImporter):
    """Adds an ONNX model to a network.

    ``input_shapes`` has shapes for some inputs, instead of those that the model declares; ``as_inputs`` names the
    initializers to import as inputs. With ``keeps_identities``, each Identity of the model's own graph is a layer, so
    that all tensors of the graph can be found by their names.

    Attributes:
        outputs: the outputs of each node of the model's own graph, by the name of the node.
    """

    FORMAT, INVALID_MODEL, INVALID_GRAPH = "ONNX", "NL741", "NL745"

    def __init__(
        self,
        model: Model,
        network: INetworkDefinition,
        input_shapes: Mapping[str, Sequence[int]] | None = None,
        as_inputs: Collection[str] = (),
        keeps_identities: bool = False,
    ) -> None:
        super().__init__(model.name, network)
        self._model = model
        self._keeps_identities = keeps_identities
        self._inputs = ModelInputs(model.proto.graph, input_shapes or {}, frozenset(as_inputs))
        self._outermost = 0
        self._assumptions = Assumptions(self._make)
        self._has_alternatives = False
        self.outputs: dict[str, Sequence[Value]] = {}

    def _add_model(self) -> None:
        graph = self._model.proto.graph
        self._make.network.name = graph.name
        self._check_ends(len(self._inputs.protos), len(graph.output))
        scope = NameScope(self._model.opsets)
        self._add_inputs(scope)
        self._add_graph(graph, scope)
        for proto in graph.output:
            value = self._read(proto.name, scope, "the outputs")
            with self._errors.collect(f"output {quoted(proto.name)}"):
                value = merged(value)
            if isinstance(value, ITensor):
                self._mark(proto.name, value)

    def _add_inputs(self, scope: NameScope) -> None:
        with self._errors.collect("the inputs"):
            self._inputs.check_names()
        for proto in self._inputs.protos:
            scope.values[proto.name] = Unimported()
            with self._errors.collect(f"input {quoted(proto.name)}"):
                scope.values[proto.name] = self._inputs.add(self._make.network, proto)

    def _mark(self, name: str, tensor: ITensor) -> None:
        """Mark an output of the network, once if the model names it several times."""
        if all(each.name != name for each in self._make.network.outputs):
            with self._errors.collect(f"output {quoted(name)}"):
                self._mark_output(tensor, name, name)

    # ------------------------------------------------------------------ graphs

    def _add_graph(self, graph: onnx.GraphProto | onnx.FunctionProto, scope: NameScope) -> None:
        """Add the initializers and nodes of a graph or function to the network."""
        if scope.depth > DEEPEST:
            what = f"graphs and functions are nested more than {DEEPEST} deep"
            raise ModelError(self._errors.finding(self.INVALID_MODEL, what))
        if isinstance(graph, onnx.GraphProto):
            self._add_initializers(graph, scope)
        needed: dict[str, int] = {}
        for number, proto in enumerate(graph.node):
            self._count_node()
            self._outermost = number if scope.depth == 0 else self._outermost
            node = self._node(proto, number, scope)
            values = self._add_node(node, scope)
            if any(isinstance(each, Alternatives) for each in values):
                self._has_alternatives = True
                needed = needed or last_readers(graph)
                merge_finished(scope.values, needed, number)
            if scope.depth == 0:
                self.outputs[node.name] = values

    def _add_subgraph(self, proto: onnx.GraphProto, scope: NameScope, inputs: Sequence[ITensor]) -> list[Value]:
        """Add the nodes of a graph inside a node to the network; return its outputs.

        Raises:
            LayerError: the graph has other inputs.
            InputNotImported: one of its outputs cannot be imported.
        """
        names = [each.name for each in proto.input]
        require(len(set(names)) == len(names), f"two inputs of the graph {quoted(proto.name)} have one name")
        require(len(inputs) == len(names), f"the graph {quoted(proto.name)} has {len(names)} inputs, not {len(inputs)}")
        inner = scope.inside(dict(zip(names, inputs, strict=True)))
        self._add_graph(proto, inner)
        outputs = [self._read(each.name, inner, f"the outputs of {quoted(proto.name)}") for each in proto.output]
        return all_imported([Unimported() if each is None else each for each in outputs])

    def _add_initializers(self, graph: onnx.GraphProto, scope: NameScope) -> None:
        directory = self._model.directory
        dense = [(each.name, partial(array_of, each, directory)) for each in graph.initializer]
        sparse = [(each.values.name, partial(dense_of, each, directory)) for each in graph.sparse_initializer]
        taken = self._inputs.names if scope.depth == 0 else frozenset[str]()
        for name, decode in [*dense, *sparse]:
            if name not in taken:
                with self._errors.collect(f"initializer {quoted(name)}"):
                    self._add_initializer(name, decode, scope)

    def _add_initializer(self, name: str, decode: Callable[[], Array], scope: NameScope) -> None:
        _check_new(name, scope)
        scope.values[name] = Unimported()
        array = decode()
        layer = self._make.network.add_constant(array.shape, array)
        layer.name, layer.metadata = name, f"[ONNX Initializer: {name}]"
        scope.values[name] = name_tensor(layer.outputs[0], name)

    # ------------------------------------------------------------------ nodes

    def _node(self, proto: onnx.NodeProto, number: int, scope: NameScope) -> ImportedNode:
        version = scope.opsets.get(domain_of(proto.domain), 1)
        directory = self._model.directory
        return ImportedNode(proto, version, number, scope.bindings, directory, self._outermost, scope.functions)

    def _add_node(self, node: ImportedNode, scope: NameScope) -> Sequence[Value]:
        """Add the layers of a node to the network, and its outputs to the scope; return its outputs."""
        values = self._import_node(node, len(node.proto.output), lambda: self._outputs_of(node, scope))
        for name, value in zip(node.proto.output, values, strict=False):
            if name:
                with self._errors.collect(node.description, node):
                    _check_new(name, scope)
                scope.values[name] = name_tensor(value, name) if isinstance(value, ITensor) else value
        return values

    def _outputs_of(self, node: ImportedNode, scope: NameScope) -> Sequence[Value]:
        undecided = self._undecided(node, scope)
        if undecided is not None:
            return self._outputs_in_both(node, scope, undecided)
        node.check()
        reader = f"node {quoted(node.name)}"
        values = all_imported([self._read(each, scope, reader, node) if each else None for each in node.proto.input])
        inputs = [each for each in values if not isinstance(each, Alternatives)]
        assert len(inputs) == len(values), "alternatives are resolved"
        function = None if node.key in self._model.functions else function_of(node)
        if function is None:
            return self._call_function(node, inputs, scope)
        call = Call(node, self._make, lambda name: self._subgraph(node.attribute(name), scope), self._assumptions)
        outputs = self._call(node, len(node.proto.output), function, call, inputs)
        return (
            [self._identity(each) if each in inputs else each for each in outputs] if self._is_kept(scope) else outputs
        )

    def _is_kept(self, scope: NameScope) -> bool:
        return self._keeps_identities and scope.depth == 0

    def _identity(self, value: Value) -> Value:
        if isinstance(value, ITensor) and value.type.is_tensor:
            return self._make.network.add_identity(value).outputs[0]
        return value

    def _subgraph(self, proto: onnx.GraphProto, scope: NameScope) -> Subgraph:
        return Subgraph(proto, partial(self._add_subgraph, proto, scope))

    def _call_function(self, node: ImportedNode, inputs: Sequence[ITensor | None], scope: NameScope) -> Sequence[Value]:
        """Add the nodes of the function that a node calls to the network; return its outputs."""
        body = self._model.functions.get(node.key) or body_of(node, inputs)
        if body is None:
            what, fix = f"netloop has no operator {node.operator}", FIXES.get(node.domain, "")
            raise LayerError(what, reason("NL744"), fix, "NL744")
        require(len(inputs) <= len(body.input), f"{quoted(node.op)} takes {len(body.input)} inputs, not {len(inputs)}")
        given = [*inputs, *[None] * (len(body.input) - len(inputs))]
        inner = NameScope(
            {**scope.opsets, **opsets_of(body.opset_import)},
            bindings={**default_attributes(body), **node.given},
            functions=(*scope.functions, node.op),
            depth=scope.depth + 1,
            values=dict(zip(body.input, given, strict=True)),
        )
        self._add_graph(body, inner)
        wanted = zip(body.output, node.proto.output, strict=False)
        return [
            self._read(name, inner, f"the outputs of {quoted(body.name)}") if used else None for name, used in wanted
        ]

    # ------------------------------------------------------------------ values of two ranks

    def _undecided(self, node: ImportedNode, scope: NameScope) -> Alternatives | None:
        """The first value of two branches that a node or a graph inside it reads; None if there is none."""
        if not self._has_alternatives:
            return None
        holders = ((name, scope.defining(name)) for name in names_read(node.proto))
        values = (self._assumptions.resolve(holder.values[name]) for name, holder in holders if holder is not None)
        return next((each for each in values if isinstance(each, Alternatives)), None)

    def _outputs_in_both(self, node: ImportedNode, scope: NameScope, read: Alternatives) -> Sequence[Value]:
        """The outputs of a node that reads alternatives: those in both branches, merged where they can be.

        If the node is possible in one branch only, the network asserts that this one is taken.
        """
        condition, errors = read.split.condition, {True: self._errors.empty(), False: self._errors.empty()}
        made = {branch: self._outputs_in(node, scope, condition, branch, errors[branch]) for branch in errors}
        possible = {branch: outputs for branch, outputs in made.items() if outputs is not None}
        if len(possible) == 2:
            return [Alternatives(read.split, pair) for pair in zip(possible[True], possible[False], strict=True)]
        if not possible:
            self._errors.extend(errors[True])
            raise InputNotImported
        ((branch, outputs),) = possible.items()
        self._assumptions.require(condition, branch, errors[not branch].findings[0].what)
        return outputs

    def _outputs_in(
        self, node: ImportedNode, scope: NameScope, condition: ITensor, branch: bool, errors: ImportErrors
    ) -> Sequence[Value] | None:
        """The outputs of a node in one branch; None, and the errors, if it is not possible there."""
        self._count_node()
        outputs, before, self._errors = None, self._errors, errors
        try:
            with self._assumptions.alternative(condition, branch), errors.collect(node.description, node):
                outputs = self._outputs_of(node, scope)
        finally:
            self._errors = before
        return None if errors.findings else outputs

    # ------------------------------------------------------------------ names

    def _read(self, name: str, scope: NameScope, reader: str, node: ImportedNode | None = None) -> Value:
        holder = scope.defining(name)
        if holder is not None:
            return self._assumptions.resolve(holder.values[name])
        what = f"{reader} reads {quoted(name)}, which is not defined before it"
        self._errors.add(self.INVALID_GRAPH, what, did_you_mean(name, scope.names()), node)
        return Unimported()


def _check_new(name: str, scope: NameScope) -> None:
    if name in scope.values:
        raise LayerError(f"{quoted(name)} is defined twice", reason("NL745"), "", "NL745")
