"""Loops and conditionals.

Values that a body reads from the outer net become inputs of the layer and Parameters of the body, because a body sees
nothing else. Four things are written so that OpenVINO's own loops compute them correctly:

- Iterators gather by the number of the iteration. Sliced inputs may be overwritten while they are read.
- A loop that may run no iteration is inside of a conditional. It would leave stale rows, or rows of a wrong shape.
- Values and conditions that depend on constants only are made to depend on a random number too. Folding them may end
  the process, and a conditional whose condition it knows got the lengths of one branch, and other lengths behind it.
- Outputs of a conditional are broadcast to their own shapes. OpenVINO may overwrite them before they are read.
"""

from collections.abc import Sequence

import numpy as np

from netloop.formats.onnx_graph.graph import OnnxGraph, Value
from netloop.formats.onnx_graph.node_builder import FLOATS_OF_8_BITS, INT8, UINT8
from netloop.formats.openvino.exporter.ir import OUTSIDE, IrBody, IrLayer, IrWire
from netloop.formats.openvino.exporter.operators import BOOL, INT64, IrPort, LayerBuilder, OnnxNode, exports
from netloop.formats.openvino.exporter.operators.sequence import stack_of_type, stacked_shape
from netloop.values.types import UNKNOWN, Shape, TensorType

ENDLESS = -1
"""The trip count of a Loop without a COUNT."""


@exports("If")
def conditional(build: LayerBuilder, node: OnnxNode, condition: IrPort) -> tuple[IrPort, ...]:
    branches: list[tuple[LayerBuilder, Sequence[IrPort]]] = []
    for branch in ("then_branch", "else_branch"):
        graph: OnnxGraph = node.attributes[branch]
        inner = build.inside()
        inner.add_graph(graph)
        branches.append((inner, [stack_of_type(inner, inner.read(value), type) for value, type in graph.outputs]))
    types = zip(*(node.attributes[branch].outputs for branch in ("then_branch", "else_branch")), strict=True)
    shapes = [_shape_of_either(stacked_shape(a), stacked_shape(b)) for (_, a), (_, b) in types]
    outputs = [IrPort(value.dtype, shape) for value, shape in zip(node.outputs, shapes, strict=True)]
    return _if(build, condition, branches, outputs)


def _shape_of_either(a: Shape, b: Shape) -> Shape | None:
    """The shape of a tensor that has one of two shapes; None if their ranks differ."""
    if len(a) != len(b):
        return None
    return tuple(length if length == other else UNKNOWN for length, other in zip(a, b, strict=True))


def _if(
    build: LayerBuilder,
    condition: IrPort,
    branches: Sequence[tuple[LayerBuilder, Sequence[IrPort]]],
    outputs: Sequence[IrPort],
) -> tuple[IrPort, ...]:
    """Add an If with two nets, and return its outputs."""
    captured = list(dict.fromkeys(port for inner, _ in branches for port in inner.captured))
    places = {port: place for place, port in enumerate(captured, 1)}
    layer = build.layer("If", 8, [build.opaque_flag(condition), *captured], outputs)
    for tag, (inner, results) in zip(("then_body", "else_body"), branches, strict=True):
        inputs = [IrWire(places[port], own) for port, own in inner.captured.items()]
        wires = [IrWire(position, inner.result(result)) for position, result in enumerate(results)]
        layer.bodies.append(IrBody(tag, inner.net, inputs, wires))
    return tuple(_of_run_time_shape(build, port) for port in outputs)


def _of_run_time_shape(build: LayerBuilder, port: IrPort) -> IrPort:
    """An output of an If, broadcast to its own shape, which is read while the model runs.

    OpenVINO prepares the memory of the layers behind an If before the If runs, and may give one of them the memory of
    the output: the output was lost in the first call and in each call with longer tensors. It does not do so across a
    layer whose shape depends on values. A Broadcast to a shape without axes would end the process.
    """
    if not port.shape or port.dtype in FLOATS_OF_8_BITS:
        return port
    return build.op("Broadcast", 3, port, build.shape(port), shape=port.shape, mode="numpy")


@exports("Loop")
def loop(
    build: LayerBuilder, node: OnnxNode, count: IrPort | None, condition: IrPort, *initial: IrPort
) -> tuple[IrPort, ...]:
    """Loop, inside of an If unless it is known whether the first iteration runs."""
    types = [type for _, type in node.attributes["body"].inputs[2:]]
    initial = tuple(stack_of_type(build, state, type) for state, type in zip(initial, types, strict=True))
    numbers = None if count is None else build.ints(count)
    certain = build.ints(condition)
    if certain == [0] or (numbers is not None and numbers[0] <= 0):
        return (*initial, *_no_rows(build, node))
    if certain == [1] and (count is None or numbers is not None):
        return _LoopLayer(build, node, count, initial).outputs()
    if count is not None:
        is_positive = build.pointwise("Greater", count, build.number_like(0, count), dtype=BOOL)
        if certain != [1]:
            is_positive = build.pointwise("LogicalAnd", build.opaque_flag(condition), is_positive)
        condition = is_positive
    some, none = build.inside(), build.inside()
    least = None if count is None else some.pointwise("Maximum", some.capture(count), some.constant(1, INT64))
    ports = _LoopLayer(some, node, least, [some.capture(state) for state in initial]).outputs()
    nothing = [*(none.capture(state) for state in initial), *_no_rows(none, node)]
    return _if(build, condition, [(some, ports), (none, nothing)], [IrPort(port.dtype, port.shape) for port in ports])


def _no_rows(build: LayerBuilder, node: OnnxNode) -> list[IrPort]:
    """The stacked outputs of a loop without iterations."""
    graph: OnnxGraph = node.attributes["body"]
    states = len(node.inputs) - 2
    rows = [type for _, type in graph.outputs[1 + states :]]
    return [build.constant(np.zeros((0, *(max(0, length) for length in row.shape)), row.dtype)) for row in rows]


class _LoopLayer:
    """A Loop under construction, of at least one iteration."""

    def __init__(self, build: LayerBuilder, node: OnnxNode, count: IrPort | None, initial: Sequence[IrPort]) -> None:
        trip_count = build.constant(ENDLESS, INT64) if count is None else count
        self.build = build
        self.graph: OnnxGraph = node.attributes["body"]
        # in a body, OpenVINO writes sums of 8 bits over a constant of an initial state, for the next call
        own = [build.opaque(state) if state.dtype in (INT8, UINT8) else state for state in initial]
        self.inputs = [trip_count, build.constant(True, BOOL), *own]
        self.inner = build.inside()

    def outputs(self) -> tuple[IrPort, ...]:
        """Add the layer; return the states after the last iteration and the rows of all iterations."""
        iteration, flag, *states = (self._parameter(*tensor) for tensor in self.graph.inputs)
        self.inner.add_graph(self.graph)
        condition, *values = (
            stack_of_type(self.inner, self.inner.read(value), type) for value, type in self.graph.outputs
        )
        if condition is flag.outputs[0]:
            condition = self.inner.constant(True, BOOL)
        body = self._body(iteration, states, values)
        body.outputs.append(IrWire(OUTSIDE, self.inner.result(condition), purpose="execution_condition"))
        body.net.layers.remove(flag)
        ports = [IrPort(port.dtype, port.shape) for port in (state.outputs[0] for state in states)]
        ports += [IrPort(type.dtype, (UNKNOWN, *type.shape)) for _, type in self.graph.outputs[1 + len(states) :]]
        pairs = enumerate(zip(states, values, strict=False), 2)
        self._hide_constants([place for place, (state, value) in pairs if self.inner.origin(value) is state])
        self.build.layer("Loop", 5, self.inputs, ports).bodies.append(body)
        return tuple(ports)

    def _hide_constants(self, staying: Sequence[int]) -> None:
        """Make constants depend on a random number where OpenVINO would handle them wrongly.

        It moves what a state that stays starts from into the body: with a constant of bool the process ended, and a
        loop whose other inputs are constants is one of only constants, which it refuses.

        Args:
            staying: the inputs that states start from which stay as they are.
        """
        changing = [port for place, port in enumerate(self.inputs) if place not in staying]
        if not any(map(self.build.varies, changing)):
            self.inputs[1] = self.build.opaque_true()
        for place in staying:
            if self.inputs[place].dtype == BOOL:
                self.inputs[place] = self.build.opaque(self.inputs[place])

    def _parameter(self, value: Value, type: TensorType) -> IrLayer:
        layer = self.inner.parameter(value.name, value.dtype, stacked_shape(type))
        self.inner.put(value, layer.outputs[0])
        return layer

    def _body(self, iteration: IrLayer, states: Sequence[IrLayer], values: Sequence[IrPort]) -> IrBody:
        """The body with its connections."""
        body = IrBody("body", self.inner.net, [IrWire(place, state) for place, state in enumerate(states, 2)], [])
        for position, value in enumerate(values):
            if position < len(states):
                result = self.inner.result(self._next(value, states[position]))
                body.back_edges.append((result, states[position]))
                body.outputs.append(IrWire(position, result))
            else:
                row = self.inner.expand_dims(self.inner.opaque(value), [0])
                body.outputs.append(IrWire(position, self.inner.result(row), axis=0))
        body.inputs += [
            IrWire(place, layer) for place, layer in enumerate(self.inner.captured.values(), len(self.inputs))
        ]
        body.inputs.append(IrWire(OUTSIDE, iteration, purpose="current_iteration"))
        self.inputs += self.inner.captured
        return body

    def _next(self, value: IrPort, state: IrLayer) -> IrPort:
        """The next value of a state, copied if another state has it now, because OpenVINO writes states one by one."""
        origin = self.inner.origin(value)
        return value if origin is state or origin.type != "Parameter" else self.inner.copy(value)
