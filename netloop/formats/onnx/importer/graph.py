"""The ONNX importer: a model's graph, node by node, to layers.

Each graph and each function has a scope of its own: a graph inside a node may read the names around it, a function only
its inputs.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import onnx

from netloop.formats.onnx.importer.call import NodeCall, Subgraph
from netloop.formats.onnx.importer.function_calls import domain_of
from netloop.formats.onnx.importer.functions import body_of, default_attributes
from netloop.formats.onnx.importer.inputs import ModelInputs, contradicts
from netloop.formats.onnx.importer.model import Model, opsets_of, version_of
from netloop.formats.onnx.importer.node import ImportedNode, needs_version
from netloop.formats.onnx.importer.node_order import Numbered, free_names, last_readers, nodes_in_order
from netloop.formats.onnx.importer.operators import function_of
from netloop.formats.onnx.importer.parts import part_of
from netloop.formats.onnx.importer.scope import NameScope
from netloop.formats.onnx.importer.unknown_operators import unknown_findings, unknown_operators
from netloop.formats.onnx.tensors import array_of, dense_of
from netloop.formats.shared import Unimported
from netloop.formats.shared.alternatives import Alternatives, Value, merge_finished, merged
from netloop.formats.shared.assumptions import Assumptions
from netloop.formats.shared.fixed_inputs import FixedInputs
from netloop.formats.shared.import_errors import InputNotImported
from netloop.formats.shared.importer import DEEPEST, ModelImporter, Operator, all_imported, name_tensor
from netloop.formats.shared.own_operators import OwnOperator, outputs_of_own
from netloop.model.formulas import FormulaBuilder, as_dtype
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.sources import IConstantLayer
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import LayerError, ModelError, did_you_mean, quoted, reason, require
from netloop.values.types import Array

Stored = onnx.TensorProto | onnx.SparseTensorProto
"""An initializer."""
MOST_GRADIENTS = 64
"""The most gradients that a model may expand to: one of a value that depends on others imports those again."""
MOST_FAILURES = 64
"""The most attempts that fail: those of a loop in another one are made anew in each attempt of that one."""


class OnnxImporter(ModelImporter):
    """Adds an ONNX model to a network.

    ``input_shapes`` has shapes for some inputs, instead of those that the model declares; ``as_inputs`` names the
    initializers to import as inputs; ``operators`` has functions for operators, by domain and name; ``inputs`` has
    values for inputs, which become constants. With ``keeps_identities``, each Identity of the model's own graph is a
    layer, so that all tensors of the graph can be found by their names.

    Attributes:
        outputs: the outputs of each node of the model's own graph, by the name of the node.
    """

    FORMAT, INVALID_MODEL, INVALID_GRAPH = "ONNX", "NL741", "NL745"
    DECIDE = "fix lengths that decide them, with input_shapes"
    ADVICE: ClassVar = {
        "NL401": "correct the node or export the model again; if onnxruntime runs the model, please report it",
        "NL745": "export the model again; onnx.checker.check_model finds such errors",
        "NL746": "cut the model where its values are numbers, with onnx.utils.extract_model",
    }

    def __init__(
        self,
        model: Model,
        network: INetworkDefinition,
        input_shapes: Mapping[str, Sequence[int]] | None = None,
        as_inputs: Collection[str] = (),
        operators: Mapping[str, OwnOperator] | None = None,
        inputs: Mapping[str, Any] | None = None,
        keeps_identities: bool = False,
    ) -> None:
        super().__init__(model.name, network)
        self._model = model
        self._forgiven = model.forgiven
        self._keeps_identities = keeps_identities
        self._inputs = ModelInputs(model, input_shapes or {}, frozenset(as_inputs), FixedInputs(inputs))
        self._own = {key_of(name): function for name, function in (operators or {}).items()}
        self._initializers: dict[str, IConstantLayer] = {}
        self._outermost = 0
        self._gradients = 0
        self._failures = 0
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
        self._report_unknown()
        self._inputs.set_defaults(self._make.network, self._initializers, self._make.read)
        for proto in (*graph.output, *graph.value_info):
            value = scope.values.get(proto.name)
            if isinstance(value, ITensor) and contradicts(proto.type, value.type):
                self._forgiven.add(CONTRADICTED, proto.name)

    def _report_unknown(self) -> None:
        """Report all operators of the model that are unknown, if one of them was met."""
        if any(finding.code == UNKNOWN for finding in self._errors.findings):
            unknown = unknown_operators(self._model, self._own)
            others = [
                finding for finding in self._errors.findings if getattr(finding.at, "operator", "") not in unknown
            ]
            self._errors.findings[:] = [*unknown_findings(self._model, unknown), *others]

    def _add_inputs(self, scope: NameScope) -> None:
        with self._errors.collect("the inputs"):
            self._inputs.check_names()
        for proto in self._inputs.protos:
            scope.values[proto.name] = Unimported()
            with self._errors.collect(f"input {quoted(proto.name)}"):
                scope.values[proto.name] = self._inputs.add(self._make.network, proto)

    def _mark(self, name: str, tensor: ITensor) -> None:
        """Mark an output of the network, once if the model names it several times."""
        if all(tensor.name != name for tensor in self._make.network.outputs):
            with self._errors.collect(f"output {quoted(name)}"):
                self._mark_output(tensor, name, name)

    # ------------------------------------------------------------------ graphs

    def _add_graph(self, graph: onnx.GraphProto | onnx.FunctionProto, scope: NameScope) -> None:
        """Add the initializers and nodes of a graph or function to the network."""
        if scope.depth > DEEPEST:
            what = f"graphs and functions are nested more than {DEEPEST} deep"
            raise ModelError(self._errors.finding(self.INVALID_MODEL, what))
        scope.graphs = scope.graphs or (graph, *(scope.around.graphs if scope.around else ()))
        if isinstance(graph, onnx.GraphProto):
            self._add_initializers(graph, scope)
        needed: dict[str, int] = {}
        nodes = self._in_order(graph, scope)
        for position, (number, proto) in enumerate(nodes):
            self._count_node()
            self._outermost = number if scope.depth == 0 else self._outermost
            node = self._node(proto, number, scope)
            values = self._add_node(node, scope)
            if any(isinstance(value, Alternatives) for value in values):
                self._has_alternatives = True
                needed = needed or last_readers([node for _, node in nodes], _output_names(graph))
                merge_finished(scope.values, needed, position)
            if scope.depth == 0:
                self.outputs[node.name] = values

    def _in_order(self, graph: onnx.GraphProto | onnx.FunctionProto, scope: NameScope) -> list[Numbered]:
        """The nodes of a graph, each after those that it reads."""
        try:
            nodes = nodes_in_order(graph.node, lambda name: scope.defining(name) is not None)
        except LayerError as error:
            raise ModelError(self._errors.finding(self.INVALID_GRAPH, error.what, error.fix)) from error
        latest = 0
        for number, proto in nodes:
            if number < latest:
                self._forgiven.add(UNSORTED, self._node(proto, number, scope).name)
            latest = max(latest, number)
        return nodes

    def _add_subgraph(self, proto: onnx.GraphProto, scope: NameScope, inputs: Sequence[ITensor]) -> list[Value]:
        """Add the nodes of a graph inside a node to the network; return its outputs.

        Raises:
            LayerError: the graph has other inputs.
            InputNotImported: one of its outputs cannot be imported.
        """
        names = [info.name for info in proto.input]
        require(len(inputs) == len(names), f"the graph {quoted(proto.name)} has {len(names)} inputs, not {len(inputs)}")
        inner = scope.inside({})
        for name, value in zip(names, inputs, strict=True):
            self._check_new(name, inner)
            inner.values[name] = value
        self._add_graph(proto, inner)
        outputs = [self._read(info.name, inner, f"the outputs of {quoted(proto.name)}") for info in proto.output]
        return all_imported([Unimported() if value is None else value for value in outputs])

    def _add_initializers(self, graph: onnx.GraphProto, scope: NameScope) -> None:
        stored: dict[str, list[Stored]] = {}
        for initializer in (*graph.initializer, *graph.sparse_initializer):
            stored.setdefault(_name_of(initializer), []).append(initializer)
        used = {name for node in graph.node for name in free_names(node)}.union(_output_names(graph))
        taken = self._inputs.names if scope.depth == 0 else frozenset[str]()
        for name, protos in stored.items():
            if name in used and name not in taken:
                with self._errors.collect(f"initializer {quoted(name)}"):
                    self._add_initializer(name, protos, scope)

    def _add_initializer(self, name: str, protos: Sequence[Stored], scope: NameScope) -> None:
        self._check_new(name, scope)
        scope.values[name] = Unimported()
        if len(protos) > 1:
            same = len({proto.SerializeToString(deterministic=True) for proto in protos}) == 1
            what = f"the model has {len(protos)} initializers of this name, with different values"
            _require_graph(same, what, ONE_NAME)
            self._forgiven.add("the model has the initializers {} more than once, with equal values", name)
        array = _array(protos[0], self._model.directory)
        layer = self._make.network.add_constant(array.shape, array)
        layer.name, layer.metadata = name, f"[ONNX Initializer: {name}]"
        if scope.depth == 0:
            self._initializers[name] = layer
        scope.values[name] = name_tensor(layer.outputs[0], name)

    def _check_new(self, name: str, scope: NameScope) -> None:
        """Check that a graph does not define a name twice."""
        _require_graph(name not in scope.values, f"{quoted(name)} is defined twice", ONE_NAME)
        if not scope.calls and scope.around is not None and scope.around.defining(name) is not None:
            self._forgiven.add(HIDING, name)

    # ------------------------------------------------------------------ nodes

    def _node(self, proto: onnx.NodeProto, number: int, scope: NameScope) -> ImportedNode:
        version = version_of(proto, scope.opsets)
        directory = self._model.directory
        return ImportedNode(proto, version, number, scope.bindings, directory, self._outermost, scope.calls)

    def _add_node(self, node: ImportedNode, scope: NameScope) -> Sequence[Value]:
        """Add the layers of a node to the network, and its outputs to the scope; return its outputs."""
        values = self._import_node(node, len(node.proto.output), lambda: self._outputs_of(node, scope))
        for name, value in zip(node.proto.output, values, strict=False):
            if name:
                with self._errors.collect(node.description, node):
                    self._check_new(name, scope)
                scope.values[name] = name_tensor(value, name) if isinstance(value, ITensor) else value
        return values

    def _outputs_of(self, node: ImportedNode, scope: NameScope) -> Sequence[Value]:
        undecided = self._undecided(node, scope)
        if undecided is not None:
            return self._in_both(node, undecided, lambda: self._outputs_of(node, scope))
        self._check_version(node, scope)
        node.check()
        reader = f"node {quoted(node.name)}"
        values = all_imported([self._read(name, scope, reader, node) if name else None for name in node.proto.input])
        inputs = [alternatives for alternatives in values if not isinstance(alternatives, Alternatives)]
        assert len(inputs) == len(values), "alternatives are resolved"
        function = self._function_of(node)
        if function is None:
            return self._call_function(node, inputs, scope)
        subgraph, part = lambda name: self._subgraph(node.attribute(name), scope), partial(self._part, scope)
        call = NodeCall(node, self._make, subgraph, self._assumptions, part, partial(self._attempt, node))
        outputs = self._call(node, len(node.proto.output), function, call, inputs)
        if self._keeps_identities and scope.depth == 0:
            return [self._identity(tensor) if tensor in inputs else tensor for tensor in outputs]
        return outputs

    def _identity(self, value: Value) -> Value:
        if not isinstance(value, ITensor) or not value.type.is_tensor:
            return value
        return self._make.network.add_identity(value).outputs[0]

    def _function_of(self, node: ImportedNode) -> Operator | None:
        """The function that adds the layers of a node; None if a function of the model or of the standard may do."""
        own = self._own.get(node.key[:2])
        if own is not None:
            return partial(_call_own, own)
        return None if node.key in self._model.functions else function_of(node)

    def _check_version(self, node: ImportedNode, scope: NameScope) -> None:
        """Check that the model imports a version of a node's operator, unless the operator has only one version.

        Raises:
            LayerError: it does not.
        """
        if node.domain in scope.opsets or node.key in self._model.functions:
            return
        domain = node.domain or "ai.onnx"
        what = f"the model does not import the operators of {quoted(domain)}, and the versions of {node.op} differ"
        _require_graph(not needs_version(*node.key[:2]), what, f"add {quoted(domain)} and its version to opset_import")
        self._forgiven.add("the model uses operators of {} without importing their version; they have only one", domain)

    def _subgraph(self, proto: onnx.GraphProto, scope: NameScope) -> Subgraph:
        return Subgraph(proto, partial(self._add_subgraph, proto, scope))

    def _attempt(self, node: ImportedNode, translate: Callable[[], list[ITensor]]) -> list[ITensor] | None:
        """The outputs of a node that a function adds; None if that has errors, which are not reported."""
        if self._failures >= MOST_FAILURES:
            return None
        outputs, before, self._errors = None, self._errors, self._errors.empty()
        try:
            with self._errors.collect(node.description, node):
                outputs = translate()
            self._failures += bool(self._errors.findings)
            return None if self._errors.findings else outputs
        finally:
            self._errors = before

    def _part(self, scope: NameScope, inputs: Mapping[str, ITensor], output: str) -> INetworkDefinition:
        """The nodes between some values of a graph and another one as a network, with the inputs of these names.

        Integers that are known here are constants there, as they may decide shapes.

        Raises:
            LayerError: the output depends on other values too.
            InputNotImported: the output cannot be imported.
        """
        self._gradients += 1
        if self._gradients > MOST_GRADIENTS:
            what = f"the model expands to more than {MOST_GRADIENTS} gradients"
            raise ModelError(self._errors.finding(self.INVALID_MODEL, what))
        graph, network = part_of(scope.graphs, inputs, output), INetworkDefinition()
        around = self._make, self._assumptions
        self._make = FormulaBuilder(network)
        self._assumptions = Assumptions(self._make, self.DECIDE)
        try:
            inner = NameScope(scope.opsets, None, scope.bindings, scope.calls, scope.depth + 1, graphs=scope.graphs)
            for name, tensor in inputs.items():
                input_ = network.add_input(name, as_dtype(tensor.type.dtype), tensor.type.shape)
                constant = around[0].known(tensor)
                inner.values[name] = input_ if constant is None else self._make.constant(constant)
            self._add_graph(graph, inner)
            value = merged(self._read(output, inner, "the gradient"))
            if not isinstance(value, ITensor):
                raise InputNotImported
            network.mark_output(self._make.identity(value))
        finally:
            self._make, self._assumptions = around
        return network

    def _call_function(self, node: ImportedNode, inputs: Sequence[ITensor | None], scope: NameScope) -> Sequence[Value]:
        """Add the nodes of the function that a node calls to the network; return its outputs."""
        body = self._model.functions.get(node.key) or body_of(node, inputs)
        if body is None:
            raise LayerError(f"netloop has no operator {node.operator}", reason(UNKNOWN), "", UNKNOWN)
        require(len(inputs) <= len(body.input), f"{quoted(node.op)} takes {len(body.input)} inputs, not {len(inputs)}")
        tensors = [*inputs, *[None] * (len(body.input) - len(inputs))]
        inner = NameScope(
            {**scope.opsets, **opsets_of(body.opset_import)},
            bindings={**default_attributes(body), **node.attributes},
            calls=(*scope.calls, node),
            depth=scope.depth + 1,
            values=dict(zip(body.input, tensors, strict=True)),
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
        holders = ((name, scope.defining(name)) for name in free_names(node.proto))
        values = (self._assumptions.resolve(holder.values[name]) for name, holder in holders if holder is not None)
        return next((value for value in values if isinstance(value, Alternatives)), None)

    # ------------------------------------------------------------------ names

    def _read(self, name: str, scope: NameScope, reader: str, node: ImportedNode | None = None) -> Value:
        holder = scope.defining(name)
        if holder is not None:
            return self._assumptions.resolve(holder.values[name])
        what = f"{reader} reads {quoted(name)}, which is not defined before it"
        self._errors.add(self.INVALID_GRAPH, what, did_you_mean(name, scope.names()), node)
        return Unimported()


UNKNOWN = "NL744"
ONE_NAME = "give each value a name of its own"
HIDING = "graphs inside nodes define {} although the graph around them does; inside, the names mean the inner values"
CONTRADICTED = "the model declares other types or shapes for {} than its nodes make; the nodes decide"
UNSORTED = "the model has the nodes {} before nodes whose outputs they read; they are imported after those"


def key_of(name: str) -> tuple[str, str]:
    """The domain and the name of an operator, ``my.domain::Name`` or ``Name``."""
    domain, _, op = name.rpartition("::")
    return domain_of(domain), op


def _call_own(function: OwnOperator, call: NodeCall, *inputs: ITensor | None) -> Sequence[ITensor | None]:
    attributes = {name: call.attribute(name) for name in call.node.attributes}
    return outputs_of_own(function, call.node.op, call.make.network, inputs, attributes)


def _require_graph(holds: bool, what: str, fix: str) -> None:
    if not holds:
        raise LayerError(what, reason("NL745"), fix, "NL745")


def _output_names(graph: onnx.GraphProto | onnx.FunctionProto) -> list[str]:
    return [info if isinstance(info, str) else info.name for info in graph.output]


def _name_of(stored: Stored) -> str:
    return stored.values.name if isinstance(stored, onnx.SparseTensorProto) else stored.name


def _array(stored: Stored, directory: Path | None) -> Array:
    return dense_of(stored, directory) if isinstance(stored, onnx.SparseTensorProto) else array_of(stored, directory)
