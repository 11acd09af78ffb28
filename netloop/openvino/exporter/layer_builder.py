"""Adds OpenVINO's layers to a net, in place of the nodes of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from netloop.diagnostics import Finding, LayerError, require
from netloop.graph.layer import ILayer
from netloop.graph.tensor import ITensor
from netloop.onnx_graph.graph import Graph, Node, Value
from netloop.onnx_graph.node_builder import BOOL, FLOAT, FLOATS_OF_8_BITS, INT64
from netloop.openvino.exporter.document import element_type
from netloop.openvino.exporter.net import Layer, Net, Port
from netloop.openvino.exporter.operator_table import OPERATORS
from netloop.types import UNKNOWN, Array, Shape, TensorType

CODE = "NL732"
SYMMETRIC = {"Add", "Multiply", "Maximum", "Minimum", "LogicalAnd", "LogicalOr", "LogicalXor", "Equal", "NotEqual"}
VIEWS = {"Reshape", "Squeeze", "Unsqueeze", "Split", "Slice", "Concat"}
"""The layers whose outputs may be in the memory of their first input."""

Problems = dict[ILayer | ITensor | str, Finding]


class LayerBuilder:
    """Makes a net.

    Attributes:
        net: the net.
        captured: what it reads of the net around, and the Parameters that stand for it.

    Args:
        problems: what has no operator.
        around: what makes the net around.
    """

    def __init__(self, problems: Problems, around: LayerBuilder | None = None) -> None:
        self.net = Net()
        self.captured: dict[Port, Layer] = {}
        self._problems = problems
        self._around = around
        self._ports: dict[Value, Port] = {}
        self._constants: dict[Any, Port] = {}
        self._makers: dict[Port, Layer] = {}
        self._varying: set[Port] = set()
        self._name = ""

    def inside(self) -> LayerBuilder:
        """What makes a net inside of this one."""
        return LayerBuilder(self._problems, self)

    # ------------------------------------------------------------------ nodes

    def run(self, graph: Graph) -> None:
        """Add layers for all nodes of a graph."""
        for node in graph.nodes:
            try:
                self._add(node)
            except LayerError as error:
                self._complain(node, error)
                self._leave_out(node.outputs)

    def _add(self, node: Node) -> None:
        function = OPERATORS.get(node.op)
        if function is None:
            raise LayerError(f"OpenVINO has no operator for {node.op}", "its layers are those of opset 1 to 16")
        self._name = node.name
        inputs = [None if each is None else self.read(each) for each in node.inputs]
        made = function(self, node, *inputs)
        for value, port in zip(node.outputs, made if isinstance(made, tuple) else (made,), strict=False):
            self.put(value, port)

    def _complain(self, node: Node, error: LayerError) -> None:
        if node.layer is not None:
            self._problems.setdefault(node.layer, node.layer.finding_of(error, CODE))
        else:
            what = f"{node.name!r}: {error.what}"
            self._problems.setdefault(what, Finding(CODE, what, "", error.why, error.fix))

    def _leave_out(self, values: Sequence[Value]) -> None:
        """Let values be what nothing makes."""
        for value in values:
            self._ports[value] = Port(value.dtype, value.shape)
            self._makers[self._ports[value]] = Layer("", "", [], [], {})

    # ------------------------------------------------------------------ ends

    def take(self, value: Value, type: TensorType, tensor: ITensor) -> None:
        """Let a value be an input of the model."""
        try:
            require(type.is_tensor, f"OpenVINO has no tensors that are a {type}", "its inputs are tensors")
            port = self.parameter(value.name, value.dtype, type.shape).outputs[0]
        except LayerError as error:
            self._problems[tensor] = Finding(
                CODE, f"{tensor.name!r}: {error.what}", "", error.why, error.fix, at=tensor
            )
            return self._leave_out([value])
        port.names = (value.name,)
        return self.put(value, port)

    def give(self, value: Value) -> None:
        """Make a value an output of the model; what is an input or output already is copied, to have two names."""
        port = self.read(value)
        if port.names not in ((), (value.name,)):
            port = self.copy(port)
        port.names = (value.name,)
        self.result(port, value.name)

    # ------------------------------------------------------------------ values

    def put(self, value: Value, port: Port) -> None:
        """Let a value be what a layer makes."""
        if port.dtype != value.dtype:
            port = self.cast(port, value.dtype)
        if value.shape is not None and (port.shape is None or UNKNOWN in port.shape):
            port.shape = value.shape
        self._ports[value] = port

    def read(self, value: Value) -> Port:
        """What a value is in this net."""
        if value.array is not None:
            return self.constant(value.array)
        if value in self._ports:
            return self._ports[value]
        assert self._around is not None, f"{value.name!r} has no value"
        self._ports[value] = self.capture(self._around.read(value), value.name)
        return self._ports[value]

    def capture(self, outside: Port, name: str = "") -> Port:
        """What something of the net around is in this net."""
        if outside not in self.captured:
            self.captured[outside] = self.parameter(name, outside.dtype, outside.shape)
            if self._around is not None and not self._around.varies(outside):
                self._varying.discard(self.captured[outside].outputs[0])
        return self.captured[outside].outputs[0]

    # ------------------------------------------------------------------ layers

    def layer(
        self, type: str, version: int, inputs: Sequence[Port], outputs: Iterable[Port], name: str = "", **data: Any
    ) -> Layer:
        """Add a layer."""
        for port in (made := list(outputs)):
            if element_type(port.dtype) is None:
                raise LayerError(f"OpenVINO has no tensors of {port.dtype}", "its element types do not have it")
        layer = self.net.add(Layer(type, f"opset{version}", list(inputs), made, data, name or self._name))
        self._makers.update(dict.fromkeys(made, layer))
        if type in ("Parameter", "RandomUniform") or not self._varying.isdisjoint(inputs):
            self._varying.update(made)
        return layer

    def op(
        self,
        type: str,
        version: int,
        *inputs: Port,
        dtype: np.dtype[Any] | None = None,
        shape: Shape | None = None,
        **data: Any,
    ) -> Port:
        """The only output of a layer, of the element type of its first input if no other is given."""
        made = Port(inputs[0].dtype if dtype is None else dtype, shape)
        self.layer(type, version, inputs, [made], **data)
        return made

    def pointwise(self, type: str, *inputs: Port, version: int = 1, dtype: Any = None, **data: Any) -> Port:
        """The output of a layer whose inputs are stretched to each other.

        OpenVINO writes it in place of its first input, and does so even if that is in the memory of what a body is
        given; so it comes second there, or is copied.
        """
        is_in_place = dtype in (None, inputs[0].dtype)
        if is_in_place and self._around is not None and self._is_given(inputs[0]):
            if type in SYMMETRIC and not self._is_given(inputs[1]):
                inputs = inputs[::-1]
            else:
                inputs = (self.copy(inputs[0]), *inputs[1:])
        return self.op(type, version, *inputs, dtype=dtype, shape=stretched(each.shape for each in inputs), **data)

    def parameter(self, name: str, dtype: np.dtype[Any], shape: Shape | None) -> Layer:
        """What is given to the net."""
        lengths = "..." if shape is None else ",".join("?" if each == UNKNOWN else str(each) for each in shape)
        made = Port(dtype, shape)
        return self.layer("Parameter", 1, (), [made], name, shape=lengths, element_type=dtype)

    def result(self, port: Port, *names: str) -> Layer:
        """What the net gives, by some names."""
        return self.layer("Result", 1, [port], (), f"{names[0]}/sink_port_0" if names else "result", names=names)

    def constant(self, array: Any, dtype: Any = None) -> Port:
        """The numbers of an array; small equal ones are one layer."""
        numbers: Array = np.asarray(array, dtype)
        same = (numbers.dtype, numbers.shape, numbers.tobytes() if numbers.size <= 32 else id(numbers))
        if same not in self._constants:
            made = self.layer("Const", 1, (), [Port(numbers.dtype, numbers.shape)], "constant")
            made.array = numbers
            self._constants[same] = made.outputs[0]
        return self._constants[same]

    # ------------------------------------------------------------------ formulas

    def ints(self, *numbers: int) -> Port:
        """int64 numbers, 1-D."""
        return self.constant(np.array(numbers, np.int64).reshape(-1))

    def number(self, value: Any, like: Port) -> Port:
        """One number of the type of another tensor."""
        return self.constant(np.array(value).astype(like.dtype))

    def cast(self, x: Port, dtype: Any) -> Port:
        """The elements in another type; itself if they are of it."""
        dtype = np.dtype(dtype)
        if x.dtype == dtype:
            return x
        return self.op("Convert", 1, x, dtype=dtype, shape=x.shape, destination_type=dtype)

    def reshape(self, x: Port, shape: Port, *, zero_copies: bool = False) -> Port:
        """The elements in another shape."""
        array, lengths = self.source(x).array, self.known(shape)
        if array is not None and lengths is not None and (not zero_copies or 0 not in lengths):
            return self.constant(array.reshape(lengths))
        return self.op("Reshape", 1, x, shape, shape=reshaped(self, x, shape, zero_copies), special_zero=zero_copies)

    def unsqueeze(self, x: Port, *axes: int) -> Port:
        """``x`` with more axes of length 1."""
        return self.op("Unsqueeze", 1, x, self.ints(*axes), shape=with_axes(x.shape, axes))

    def shape_of(self, x: Port) -> Port:
        """The lengths of ``x``, int64, 1-D."""
        rank = UNKNOWN if x.shape is None else len(x.shape)
        return self.op("ShapeOf", 3, x, dtype=INT64, shape=(rank,), output_type=INT64)

    def copy(self, x: Port) -> Port:
        """The same numbers in memory of their own."""
        if x.dtype in FLOATS_OF_8_BITS:
            return self.cast(self.cast(x, FLOAT), x.dtype)
        return self.op("LogicalOr" if x.dtype == BOOL else "Maximum", 1, x, x, shape=x.shape, auto_broadcast="numpy")

    def certain(self) -> Port:
        """What is true, and no constant."""
        bounds = self.constant(0, FLOAT), self.constant(1, FLOAT)
        options: dict[str, Any] = {"output_type": FLOAT, "global_seed": 0, "op_seed": 0}
        drawn = self.op("RandomUniform", 8, self.ints(1), *bounds, dtype=FLOAT, shape=(1,), **options)
        scalar = self.reshape(drawn, self.ints())
        return self.pointwise("GreaterEqual", scalar, bounds[0], dtype=BOOL, auto_broadcast="numpy")

    # ------------------------------------------------------------------ what is known

    def varies(self, port: Port) -> bool:
        """Whether it follows from more than constants."""
        return port in self._varying

    def source(self, port: Port) -> Layer:
        """The layer that makes something."""
        return self._makers[port]

    def origin(self, port: Port) -> Layer:
        """The layer in whose memory something may be."""
        layer = self.source(port)
        while layer.type in VIEWS:
            layer = self.source(layer.inputs[0])
        return layer

    def _is_given(self, port: Port) -> bool:
        return self.origin(port).type == "Parameter"

    def known(self, port: Port) -> list[int] | None:
        """The integers of a constant."""
        array = self.source(port).array
        return None if array is None else [int(each) for each in array.reshape(-1)]


def stretched(shapes: Iterable[Shape | None]) -> Shape | None:
    """The shape that shapes are stretched to."""
    made: list[int] = []
    for shape in shapes:
        if shape is None:
            return None
        made = [1] * (len(shape) - len(made)) + made
        for axis, length in enumerate(shape, len(made) - len(shape)):
            if made[axis] == 1 or (made[axis] == UNKNOWN and length != 1):
                made[axis] = length
    return tuple(made)


def with_axes(shape: Shape | None, axes: Sequence[int]) -> Shape | None:
    """A shape with more axes of length 1."""
    if shape is None:
        return None
    rank = len(shape) + len(axes)
    new, rest = {axis % rank for axis in axes}, iter(shape)
    return tuple(1 if axis in new else next(rest) for axis in range(rank))


def reshaped(build: LayerBuilder, x: Port, wanted: Port, zero_copies: bool) -> Shape | None:
    """The shape that a Reshape makes, as far as it is known."""
    known = build.known(wanted)
    if known is None:
        rank = None if wanted.shape is None else wanted.shape[0]
        return None if rank in (None, UNKNOWN) else (UNKNOWN,) * rank
    source = x.shape or ()
    lengths = [
        (source[axis] if axis < len(source) else UNKNOWN) if each == 0 and zero_copies else each
        for axis, each in enumerate(known)
    ]
    if lengths.count(UNKNOWN) == 1 and x.shape is not None and UNKNOWN not in x.shape:
        rest = int(np.prod([each for each in lengths if each != UNKNOWN], dtype=np.int64))
        total = int(np.prod(x.shape, dtype=np.int64))
        lengths[lengths.index(UNKNOWN)] = total // rest if rest else 0
    return tuple(lengths)
