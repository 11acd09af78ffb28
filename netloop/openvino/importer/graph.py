"""From the graph of a model to layers.

Layers are taken in an order in which each comes after what it reads; those that no Result needs are left out. A layer
that has no meaning makes its outputs broken, and what reads them is left out; at the end all that is wrong is told at
once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from graphlib import CycleError, TopologicalSorter

from netloop.diagnostics import LayerError, ModelError, listed, reason, require
from netloop.formats import ImportErrors, InputNotImported, Unimported, keep_live, mark_output, name_layers, name_tensor
from netloop.formulas import FormulaBuilder
from netloop.graph.tensor import ITensor
from netloop.network import INetworkDefinition
from netloop.openvino.importer.call import Call, Result
from netloop.openvino.importer.model import PortId, XmlBody, XmlGraph, XmlLayer
from netloop.openvino.importer.operators import arity, function_of, versions_of
from netloop.openvino.importer.parameters import add_input
from netloop.openvino.importer.weights import WeightsFile

DEEPEST = 32
"""Graphs inside each other go no deeper."""
MOST_LAYERS = 200_000
"""A model stands for no more layers."""

MOST_INPUTS = 10_000
"""No model has more inputs."""

ROOTS = ("result", "assign")
"""What a graph is computed for."""
NEXT = ".next"
"""What the name of a variable ends in where it is the value for the next call."""
OPTIONAL = ("loop",)
"""Layers to whose inputs no edges need to lead."""

Values = dict[PortId, ITensor | Unimported]


class Importer:
    """Makes layers of a model.

    Args:
        name: what messages call the model.
        graph: its graph.
        weights: the numbers of its constants.
        network: the network that it becomes part of.
    """

    def __init__(self, name: str, graph: XmlGraph, weights: WeightsFile, network: INetworkDefinition) -> None:
        self._graph = graph
        self._weights = weights
        self._make = FormulaBuilder(network)
        self._errors = ImportErrors(name, damage="NL753")
        self._count = 0

    def add(self) -> None:
        """Add the layers, inputs and outputs of the model to the network.

        Raises:
            ModelError: the model has no meaning as one; all that is wrong is told.
        """
        self._check_known()
        values: Values = {}
        parameters = self._graph.of_type("parameter")
        if len(parameters) > MOST_INPUTS:
            raise ModelError(self._errors.finding("NL753", f"it has more than {MOST_INPUTS} Parameters"))
        for parameter in parameters:
            with self._of(parameter):
                values[_only_output(parameter)] = add_input(self._make.network, parameter)
        found = self._run(self._graph, values, 0)
        for root in (each for type in ROOTS for each in self._graph.of_type(type)):
            if isinstance(tensor := found.get(root.id), ITensor):
                self._mark(root, tensor)
        self._errors.raise_all()
        keep_live(self._make.network)

    def _check_known(self) -> None:
        """Complain of the layers, those in bodies too, that netloop does not know."""
        for layer in _live_layers(self._graph):
            if function_of(layer) is None and layer.type.lower() not in ("parameter", *ROOTS):
                known = listed([f"opset{each}" for each in versions_of(layer.type)])
                fix = f"netloop knows it of {known}" if known else ""
                self._errors.add("NL744", f"netloop has no operator {layer.operator}", fix, layer, _described(layer))
        self._errors.raise_all()

    def _mark(self, root: XmlLayer, tensor: ITensor) -> None:
        """Make a tensor an output of the network."""
        network = self._make.network
        taken = {each.name for each in (*network.inputs, *network.outputs)}
        name = next((each for each in self._names(root) if each not in taken), None)
        with self._of(root):
            require(name is not None, f"there is an output {self._names(root)[0]!r} already")
            assert name is not None
            mark_output(self._make, tensor, name, _metadata(root))

    def _names(self, root: XmlLayer) -> Sequence[str]:
        """How an output may be called, the best first."""
        if root.type.lower() == "assign":
            return [root.data.get("variable_id", "") + NEXT]
        source, number = self._graph.sources[root.id, root.inputs[0].id]
        before = next(each.names for each in self._graph.layers[source].outputs if each.id == number)
        names, own = root.names or before, root.name.partition("/sink_port_")[0]
        return [*(each for each in (own,) if each in names), *names, own, f"{own}_{root.id}"]

    # ------------------------------------------------------------------ graphs

    def inner(self, body: XmlBody, given: Mapping[int, ITensor], depth: int) -> Mapping[int, ITensor]:
        """What the Results of a body stand for, once its layers are added to the network.

        Raises:
            LayerError: a Parameter stands for nothing.
            InputNotImported: something in it has no meaning, and is told.
        """
        require(depth <= DEEPEST, f"graphs are more than {DEEPEST} inside each other")
        live = _live(body.graph)
        values: Values = {}
        for each in body.graph.of_type("parameter"):
            require(each.id in given or each.id not in live, f"{each.name!r} of the body stands for nothing")
            if each.id in given:
                values[_only_output(each)] = given[each.id]
        found = self._run(body.graph, values, depth)
        results = {id: each for id, each in found.items() if isinstance(each, ITensor)}
        if len(results) < len(found):
            raise InputNotImported
        return results

    def _run(self, graph: XmlGraph, values: Values, depth: int) -> dict[int, ITensor | Unimported]:
        """What the Results of a graph stand for."""
        found: dict[int, ITensor | Unimported] = {}
        for layer in self._in_order(graph):
            self._count += 1
            if self._count > MOST_LAYERS:
                raise ModelError(self._errors.finding("NL753", f"it stands for more than {MOST_LAYERS} layers"))
            if layer.type.lower() in ROOTS:
                found[layer.id] = self._root(graph, layer, values, depth)
            else:
                self._take(graph, layer, values, depth)
        return found

    def _in_order(self, graph: XmlGraph) -> Sequence[XmlLayer]:
        live = _live(graph)
        before = {id: [graph.sources[place][0] for place in _wired(graph, graph.layers[id])] for id in live}
        try:
            return [graph.layers[id] for id in TopologicalSorter(before).static_order()]
        except CycleError as error:
            names = " <- ".join(graph.layers[id].name for id in error.args[1][:8])
            first = graph.layers[error.args[1][0]]
            what = f"layers read each other in a circle: {names}"
            raise ModelError(self._errors.finding("NL753", what, at=first, where=_described(first))) from error

    # ------------------------------------------------------------------ layers

    def _take(self, graph: XmlGraph, layer: XmlLayer, values: Values, depth: int) -> None:
        """Find what the outputs of a layer stand for."""
        outputs = [(layer.id, each.id) for each in layer.outputs]
        if layer.type.lower() == "parameter":
            for each in outputs:
                values.setdefault(each, Unimported())
            return
        before = len(self._make.network.layers)
        made: Sequence[ITensor | Unimported] = [Unimported()] * len(outputs)
        with self._of(layer):
            made = self._made(layer, self._read(graph, layer, values), depth)
        name_layers(self._make.network, before, layer.name, _metadata(layer))
        values.update(zip(outputs, made, strict=False))

    def _root(self, graph: XmlGraph, layer: XmlLayer, values: Values, depth: int) -> ITensor | Unimported:
        """What a Result stands for, or is assigned to a variable."""
        found: ITensor | Unimported = Unimported()
        with self._of(layer):
            require(depth == 0 or layer.type.lower() == "result", "a variable is assigned in a body, which has none")
            found = next(each for each in self._read(graph, layer, values) if each is not None)
        values.update(((layer.id, each.id), found) for each in layer.outputs)
        return found

    def _made(self, layer: XmlLayer, inputs: Sequence[ITensor | None], depth: int) -> Sequence[ITensor]:
        function = function_of(layer)
        assert function is not None
        least, most = arity(function)
        takes = str(least) if least == most else f"{least} or more" if len(inputs) < least else f"{most} at the most"
        require(least <= len(inputs) <= most, f"the layer has {len(inputs)} inputs, and {layer.operator} takes {takes}")
        inner = {name: _Inner(self, body, depth + 1) for name, body in layer.bodies.items()}
        made: Result = function(Call(layer, self._make, self._weights, inner, depth), *inputs)
        outputs = [made] if isinstance(made, ITensor) else list(made)
        require(len(outputs) >= len(layer.outputs), f"the layer has {len(layer.outputs)} outputs, not {len(outputs)}")
        for tensor in outputs:
            assert tensor.type
        return [self._named(layer, number, each) for number, each in enumerate(outputs)]

    def _named(self, layer: XmlLayer, number: int, tensor: ITensor) -> ITensor:
        several = len(layer.outputs) > 1
        return name_tensor(tensor, f"{layer.name}.{number}" if several else layer.name)

    def _read(self, graph: XmlGraph, layer: XmlLayer, values: Values) -> list[ITensor | None]:
        """The inputs of a layer."""
        found: list[ITensor | Unimported | None] = []
        for port in layer.inputs:
            source = graph.sources.get((layer.id, port.id))
            if source is None and layer.type.lower() not in OPTIONAL:
                raise LayerError(f"no edge leads to input {port.id}", reason("NL753"), "", "NL753")
            found.append(None if source is None else values[source])
        inputs = [each for each in found if not isinstance(each, Unimported)]
        if len(inputs) < len(found):
            raise InputNotImported
        return inputs

    def _of(self, layer: XmlLayer) -> AbstractContextManager[None]:
        return self._errors.collect(_described(layer), layer)


class _Inner:
    """A graph inside a layer."""

    def __init__(self, importer: Importer, body: XmlBody, depth: int) -> None:
        self.body = body
        self._importer = importer
        self._depth = depth

    def __call__(self, given: Mapping[int, ITensor]) -> Mapping[int, ITensor]:
        """Add its layers to the network."""
        return self._importer.inner(self.body, given, self._depth)


def _only_output(parameter: XmlLayer) -> PortId:
    return parameter.id, parameter.outputs[0].id


def _wired(graph: XmlGraph, layer: XmlLayer) -> Iterator[PortId]:
    """The inputs of a layer to which edges lead."""
    return ((layer.id, each.id) for each in layer.inputs if (layer.id, each.id) in graph.sources)


def _live(graph: XmlGraph) -> Collection[int]:
    """The layers of a graph that are needed."""
    stack = [each.id for each in graph.layers.values() if each.type.lower() in ROOTS]
    found = dict.fromkeys(stack)
    while stack:
        layer = graph.layers[stack.pop()]
        before = [graph.sources[place][0] for place in _wired(graph, layer)]
        stack += [each for each in before if each not in found]
        found.update(dict.fromkeys(before))
    return found


def _live_layers(graph: XmlGraph) -> Iterable[XmlLayer]:
    """The layers of a graph that are needed, those in bodies too."""
    graphs = [graph]
    while graphs:
        graph = graphs.pop()
        for id in _live(graph):
            layer = graph.layers[id]
            graphs += [each.graph for each in layer.bodies.values()]
            yield layer


def _described(layer: XmlLayer) -> str:
    return f"layer {layer.id} {layer.name!r} ({layer.operator}), line {layer.line}"


def _metadata(layer: XmlLayer) -> str:
    return f"[OpenVINO Layer: {layer.name}]"
