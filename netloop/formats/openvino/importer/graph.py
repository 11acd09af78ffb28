"""The OpenVINO importer: a model's graph, layer by layer, to layers of a network.

Each layer comes after those that it reads; layers that no Result or Assign needs are left out.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from graphlib import CycleError, TopologicalSorter
from typing import Any, ClassVar

from netloop.formats.openvino.importer.call import Body, LayerCall, Tensors
from netloop.formats.openvino.importer.inputs import add_input, input_name
from netloop.formats.openvino.importer.model import PortId, XmlBody, XmlGraph, XmlLayer
from netloop.formats.openvino.importer.operators import TABLE, function_of
from netloop.formats.openvino.importer.weights import WeightsFile
from netloop.formats.openvino.importer.xml import SAVE_AGAIN
from netloop.formats.shared import Unimported
from netloop.formats.shared.alternatives import Alternatives, Value, merge_finished, merged
from netloop.formats.shared.fixed_inputs import FixedInputs
from netloop.formats.shared.import_errors import present
from netloop.formats.shared.importer import DEEPEST, ModelImporter, Operator, all_imported, name_tensor
from netloop.formats.shared.own_operators import OwnOperator, outputs_of_own
from netloop.model.graph.tensor import ITensor
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import LayerError, ModelError, listed, quoted, reason, require

ROOTS = ("result", "assign")
"""The layers that a graph is computed for."""
NEXT = ".next"
"""The suffix of the output that is the value of a variable for the next call."""
OPTIONAL = ("loop",)
"""The layers whose inputs may lack edges."""

Values = dict[PortId, Value]


class OpenVinoImporter(ModelImporter):
    """Adds an OpenVINO model to a network.

    ``inputs`` has values for inputs, which become constants; ``operators`` has functions for operators, by their type.
    """

    FORMAT, NODE, INVALID_MODEL, INVALID_GRAPH = "OpenVINO", "layer", "NL753", "NL753"
    DECIDE = "reshape the model in OpenVINO, to lengths that decide them"
    ADVICE: ClassVar = {
        "NL401": "correct the layer or convert the model again; if OpenVINO runs the model, please report it",
        "NL746": "cut the model where its values are numbers, before it is converted",
        "NL752": "give the file that was saved with the document, as weights=",
        "NL753": SAVE_AGAIN,
    }

    def __init__(
        self,
        name: str,
        graph: XmlGraph,
        weights: WeightsFile,
        network: INetworkDefinition,
        inputs: Mapping[str, Any] | None = None,
        operators: Mapping[str, OwnOperator] | None = None,
    ) -> None:
        super().__init__(name, network)
        self._fixed = FixedInputs(inputs)
        self._own = operators or {}
        self._graph = graph
        self._weights = weights

    def _add_model(self) -> None:
        self._check_operators()
        values: Values = {}
        parameters = self._graph.of_type("parameter")
        roots = [layer for type in ROOTS for layer in self._graph.of_type(type)]
        self._check_ends(len(parameters), len(roots))
        self._fixed.check_names([input_name(parameter) for parameter in parameters])
        for parameter in parameters:
            with self._collect(parameter):
                values[_only_output(parameter)] = add_input(self._make.network, parameter, self._fixed)
        outputs = self._add_graph(self._graph, values, 0)
        for root in roots:
            value = outputs.get(root.id)
            with self._collect(root):
                value = merged(value)
            if isinstance(value, ITensor):
                self._mark(root, value)

    def _check_operators(self) -> None:
        """Raise an error for each unknown operator, at its first layer; those in bodies count too."""
        unknown: dict[str, list[XmlLayer]] = {}
        for layer in _live_layers(self._graph):
            if self._function_of(layer) is None and layer.type.lower() not in ("parameter", *ROOTS):
                unknown.setdefault(layer.operator, []).append(layer)
        for operator, layers in unknown.items():
            count = f", which {len(layers)} layers have" if len(layers) > 1 else ""
            first = layers[0]
            self._errors.add(
                "NL744", f"netloop has no operator {operator}{count}", _way_out(first), first, first.description
            )
        self._errors.raise_all()

    def _function_of(self, layer: XmlLayer) -> Operator | None:
        own = self._own.get(layer.type)
        return function_of(layer) if own is None else partial(_call_own, own)

    def _mark(self, root: XmlLayer, tensor: ITensor) -> None:
        """Mark an output of the network."""
        network = self._make.network
        taken = {tensor.name for tensor in (*network.inputs, *network.outputs)}
        name = next((name for name in self._names(root) if name not in taken), None)
        with self._collect(root):
            name = present(name, f"there is an output {quoted(self._names(root)[0])} already")
            self._mark_output(tensor, name, root.name)

    def _names(self, root: XmlLayer) -> Sequence[str]:
        """Possible names of an output, the best first."""
        if root.type.lower() == "assign":
            return [root.data.get("variable_id", "") + NEXT]
        source, number = self._graph.sources[root.id, root.inputs[0].id]
        before = next(port.names for port in self._graph.layers[source].outputs if port.id == number)
        names, own = root.names or before, root.name.partition("/sink_port_")[0]
        return [*(name for name in (own,) if name in names), *names, own, f"{own}_{root.id}"]

    # ------------------------------------------------------------------ graphs

    def _add_body(self, body: XmlBody, depth: int, parameters: Tensors) -> dict[int, Value]:
        """Add the layers of a body to the network, given its Parameters; return its Results.

        Raises:
            LayerError: a Parameter has no value.
            InputNotImported: a Result cannot be imported.
        """
        require(depth <= DEEPEST, f"graphs are nested more than {DEEPEST} deep")
        live = _live(body.graph)
        values: Values = {}
        for layer in body.graph.of_type("parameter"):
            require(layer.id in parameters or layer.id not in live, f"{quoted(layer.name)} of the body has no value")
            if layer.id in parameters:
                values[_only_output(layer)] = parameters[layer.id]
        result = self._add_graph(body.graph, values, depth)
        return dict(zip(result, all_imported(list(result.values())), strict=True))

    def _add_graph(self, graph: XmlGraph, values: Values, depth: int) -> dict[int, Value]:
        """Add the layers of a graph to the network; return the inputs of its roots."""
        results: dict[int, Value] = {}
        order = self._in_order(graph)
        needed = _last_readers(graph, order)
        for position, layer in enumerate(order):
            self._count_node()
            if layer.type.lower() in ROOTS:
                results[layer.id] = self._root(graph, layer, values, depth)
            elif layer.type.lower() == "parameter":
                values.setdefault(_only_output(layer), Unimported())
            else:
                outputs = [(layer.id, port.id) for port in layer.outputs]
                translate = partial(self._outputs_of, graph, layer, values, depth)
                result = self._import_node(layer, len(outputs), translate)
                values.update(zip(outputs, result, strict=False))
                if any(isinstance(value, Alternatives) for value in result):
                    merge_finished(values, needed, position)
        return results

    def _in_order(self, graph: XmlGraph) -> Sequence[XmlLayer]:
        live = _live(graph)
        before = {id: [graph.sources[place][0] for place in _wired(graph, graph.layers[id])] for id in live}
        try:
            return [graph.layers[id] for id in TopologicalSorter(before).static_order()]
        except CycleError as error:
            names = " <- ".join(graph.layers[id].name for id in error.args[1][:8])
            first = graph.layers[error.args[1][0]]
            what = f"layers read each other in a circle: {names}"
            raise ModelError(self._errors.finding("NL753", what, at=first, where=first.description)) from error

    # ------------------------------------------------------------------ layers

    def _root(self, graph: XmlGraph, layer: XmlLayer, values: Values, depth: int) -> Value:
        """The value that a Result has, or that an Assign gives to its variable."""
        unimported: Value = Unimported()
        with self._collect(layer):
            what = "a variable is assigned in a body, and only the model itself has variables"
            require(depth == 0 or layer.type.lower() == "result", what)
            unimported = next(tensor for tensor in self._read(graph, layer, values) if tensor is not None)
        values.update(((layer.id, port.id), unimported) for port in layer.outputs)
        return unimported

    def _outputs_of(self, graph: XmlGraph, layer: XmlLayer, values: Values, depth: int) -> Sequence[Value]:
        read = self._read(graph, layer, values)
        undecided = next((tensor for tensor in read if isinstance(tensor, Alternatives)), None)
        if undecided is not None:
            return self._in_both(layer, undecided, partial(self._outputs_of, graph, layer, values, depth))
        inputs = [tensor for tensor in read if not isinstance(tensor, Alternatives)]
        function = self._function_of(layer)
        assert function is not None
        bodies = {name: Body(xml, partial(self._add_body, xml, depth + 1)) for name, xml in layer.bodies.items()}
        call = LayerCall(layer, self._make, self._weights, self._assumptions, bodies, depth)
        outputs = self._call(layer, len(layer.outputs), function, call, inputs)
        for number, tensor in enumerate(outputs):
            if isinstance(tensor, ITensor):
                name_tensor(tensor, f"{layer.name}.{number}" if len(layer.outputs) > 1 else layer.name)
        return outputs

    def _read(self, graph: XmlGraph, layer: XmlLayer, values: Values) -> list[ITensor | Alternatives | None]:
        """The inputs of a layer."""
        result: list[Value] = []
        for port in layer.inputs:
            source = graph.sources.get((layer.id, port.id))
            if source is None and layer.type.lower() not in OPTIONAL:
                raise LayerError(f"no edge leads to input {port.id}", reason("NL753"), "", "NL753")
            result.append(None if source is None else self._assumptions.resolve(values[source]))
        return all_imported(result)

    def _collect(self, layer: XmlLayer) -> AbstractContextManager[None]:
        return self._errors.collect(layer.description, layer)


def _call_own(function: OwnOperator, call: LayerCall, *inputs: ITensor | None) -> Sequence[ITensor | None]:
    return outputs_of_own(function, call.layer.type, call.make.network, inputs, call.layer.data)


def _way_out(layer: XmlLayer) -> str:
    """The fix for a layer whose operator is unknown, as its model's owner can apply it."""
    versions = listed([f"opset{version}" for version in sorted(TABLE.versions(layer.type.lower()))])
    if versions:
        return f"netloop has it in {versions}: convert the model for one of these"
    own = f"pass operators={{{layer.type!r}: function}}, a function that adds its layers"
    return f"{own}; if the model was converted from ONNX, netloop.onnx.load reads the original"


def _last_readers(graph: XmlGraph, order: Sequence[XmlLayer]) -> dict[PortId, int]:
    """The position of the last layer that reads each output; for what a root reads, the number of layers."""
    numbers: dict[PortId, int] = {}
    for position, layer in enumerate(order):
        last = len(order) if layer.type.lower() in ROOTS else position
        for place in _wired(graph, layer):
            source = graph.sources[place]
            numbers[source] = max(numbers.get(source, 0), last)
    return numbers


def _only_output(parameter: XmlLayer) -> PortId:
    return parameter.id, parameter.outputs[0].id


def _wired(graph: XmlGraph, layer: XmlLayer) -> Iterator[PortId]:
    """The inputs of a layer that edges lead to."""
    return ((layer.id, port.id) for port in layer.inputs if (layer.id, port.id) in graph.sources)


def _live(graph: XmlGraph) -> Collection[int]:
    """The layers of a graph that its roots depend on."""
    stack = [layer.id for layer in graph.layers.values() if layer.type.lower() in ROOTS]
    results = dict.fromkeys(stack)
    while stack:
        layer = graph.layers[stack.pop()]
        before = [graph.sources[place][0] for place in _wired(graph, layer)]
        stack += [number for number in before if number not in results]
        results.update(dict.fromkeys(before))
    return results


def _live_layers(graph: XmlGraph) -> Iterable[XmlLayer]:
    """The layers that the roots depend on, including those in bodies."""
    graphs = [graph]
    while graphs:
        graph = graphs.pop()
        for id in _live(graph):
            layer = graph.layers[id]
            graphs += [body.graph for body in layer.bodies.values()]
            yield layer
