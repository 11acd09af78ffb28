"""Loops and conditionals.

What a body reads of the net around becomes an input of the layer and a Parameter of the body, which is all that it
sees. Where OpenVINO's own loops go wrong, others are written: iterators are read by the number of the trip and not as
slices, which may be overwritten while they are read; and a loop that may make no trip is in a conditional, because it
leaves stale rows, or none of the right shape, if it makes none. What follows from constants alone may end the process,
and so it is made to follow from something that only the run draws.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from netloop.onnx_graph.graph import Graph, Node, Value
from netloop.onnx_graph.node_builder import BOOL, INT64
from netloop.openvino.exporter.layer_builder import LayerBuilder
from netloop.openvino.exporter.net import OUTSIDE, Body, Layer, Port, Wire
from netloop.openvino.exporter.operator_table import says
from netloop.openvino.exporter.operators.pointwise import paired
from netloop.types import UNKNOWN

ENDLESS = -1


@says("If")
def conditional(build: LayerBuilder, node: Node, condition: Port) -> tuple[Port, ...]:
    """One of two nets."""
    branches: list[tuple[LayerBuilder, Sequence[Port]]] = []
    for branch in ("then_branch", "else_branch"):
        graph: Graph = node.attributes[branch]
        inner = build.inside()
        inner.run(graph)
        branches.append((inner, [inner.read(value) for value, _ in graph.outputs]))
    return _chosen(build, condition, branches, [Port(each.dtype, each.shape) for each in node.outputs])


def _chosen(
    build: LayerBuilder,
    condition: Port,
    branches: Sequence[tuple[LayerBuilder, Sequence[Port]]],
    outputs: Sequence[Port],
) -> tuple[Port, ...]:
    """The outputs of one of two nets."""
    captured = list(dict.fromkeys(port for inner, _ in branches for port in inner.captured))
    places = {port: place for place, port in enumerate(captured, 1)}
    if not any(build.varies(each) for each in (condition, *captured)):
        condition = paired(build, "LogicalAnd", condition, build.certain())
    layer = build.layer("If", 8, [condition, *captured], outputs)
    for tag, (inner, results) in zip(("then_body", "else_body"), branches, strict=True):
        inputs = [Wire(places[port], own) for port, own in inner.captured.items()]
        wires = [Wire(position, inner.result(each)) for position, each in enumerate(results)]
        layer.bodies.append(Body(tag, inner.net, inputs, wires))
    return tuple(outputs)


@says("Loop")
def loop(build: LayerBuilder, node: Node, count: Port | None, goes_on: Port, *initial: Port) -> tuple[Port, ...]:
    """A loop, in a conditional unless it is known whether it makes a trip."""
    known = None if count is None else build.known(count)
    certain = build.known(goes_on)
    if certain == [0] or (known is not None and known[0] <= 0):
        return (*initial, *_no_rows(build, node))
    if certain == [1] and (count is None or known is not None):
        return _Loop(build, node, count, initial).outputs()
    enters = goes_on
    if count is not None:
        enters = paired(
            build, "LogicalAnd", goes_on, paired(build, "Greater", count, build.number(0, count), dtype=BOOL)
        )
    some, none = build.inside(), build.inside()
    least = None if count is None else paired(some, "Maximum", some.capture(count), some.constant(1, INT64))
    made = _Loop(some, node, least, [some.capture(each) for each in initial]).outputs()
    nothing = [*(none.capture(each) for each in initial), *_no_rows(none, node)]
    return _chosen(build, enters, [(some, made), (none, nothing)], [Port(each.dtype, each.shape) for each in made])


def _no_rows(build: LayerBuilder, node: Node) -> list[Port]:
    """The rows of a loop that makes no trip."""
    graph: Graph = node.attributes["body"]
    states = len(node.inputs) - 2
    rows = [type for _, type in graph.outputs[1 + states :]]
    return [build.constant(np.zeros((0, *(max(0, length) for length in each.shape)), each.dtype)) for each in rows]


class _Loop:
    """A Loop that makes at least one trip, in the making."""

    def __init__(self, build: LayerBuilder, node: Node, count: Port | None, initial: Sequence[Port]) -> None:
        trips = build.constant(ENDLESS, INT64) if count is None else count
        self.build = build
        self.graph: Graph = node.attributes["body"]
        self.inputs = [trips, build.constant(True, BOOL), *initial]
        self.inner = build.inside()

    def outputs(self) -> tuple[Port, ...]:
        """The states after the last trip, and the rows of all trips."""
        trip, flag, *states = (self._parameter(value) for value, _ in self.graph.inputs)
        self.inner.run(self.graph)
        condition, *values = (self.inner.read(value) for value, _ in self.graph.outputs)
        if condition is flag.outputs[0]:
            condition = self.inner.constant(True, BOOL)
        body = self._body(trip, states, values)
        body.outputs.append(Wire(OUTSIDE, self.inner.result(condition), purpose="execution_condition"))
        body.net.layers.remove(flag)
        made = [Port(each.dtype, each.shape) for each in (state.outputs[0] for state in states)]
        made += [Port(type.dtype, (UNKNOWN, *type.shape)) for _, type in self.graph.outputs[1 + len(states) :]]
        if not any(self.build.varies(each) for each in self.inputs):
            self.inputs[1] = self.build.certain()
        self.build.layer("Loop", 5, self.inputs, made).bodies.append(body)
        return tuple(made)

    def _parameter(self, value: Value) -> Layer:
        layer = self.inner.parameter(value.name, value.dtype, value.shape)
        self.inner.put(value, layer.outputs[0])
        return layer

    def _body(self, trip: Layer, states: Sequence[Layer], values: Sequence[Port]) -> Body:
        """The net, and how it is connected."""
        body = Body("body", self.inner.net, [Wire(place, each) for place, each in enumerate(states, 2)], [])
        for position, value in enumerate(values):
            if position < len(states):
                result = self.inner.result(self._next(value, states[position]))
                body.back_edges.append((result, states[position]))
                body.outputs.append(Wire(position, result))
            else:
                body.outputs.append(Wire(position, self.inner.result(self.inner.unsqueeze(value, 0)), axis=0))
        body.inputs += [Wire(place, each) for place, each in enumerate(self.inner.captured.values(), len(self.inputs))]
        body.inputs.append(Wire(OUTSIDE, trip, purpose="current_iteration"))
        self.inputs += self.inner.captured
        return body

    def _next(self, value: Port, state: Layer) -> Port:
        """What a state is next, copied if it is what another was: OpenVINO writes states one after the other."""
        origin = self.inner.origin(value)
        return value if origin is state or origin.type != "Parameter" else self.inner.copy(value)
