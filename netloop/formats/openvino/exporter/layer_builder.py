"""The builder that translates ONNX nodes to layers of an OpenVINO net."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from netloop.formats.onnx_graph.graph import OnnxGraph, OnnxNode, Value
from netloop.formats.onnx_graph.node_builder import BOOL, FLOAT, FLOATS_OF_8_BITS, INT64
from netloop.formats.openvino.exporter.document import element_type
from netloop.formats.openvino.exporter.ir import IrLayer, IrNet, IrPort
from netloop.formats.openvino.exporter.operator_table import EXPORTERS
from netloop.model.graph import ILayer, ITensor
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import Finding, LayerError, require
from netloop.values.string_arrays import type_name
from netloop.values.types import UNKNOWN, Array, Shape, TensorType

CODE = "NL732"
SYMMETRIC = {"Add", "Multiply", "Maximum", "Minimum", "LogicalAnd", "LogicalOr", "LogicalXor", "Equal", "NotEqual"}
VIEWS = {"Reshape", "Squeeze", "Unsqueeze", "Split", "Slice", "Concat"}
"""Layers whose outputs may share the memory of their first input."""

END = np.iinfo(np.int64).max
"""A bound past the end of every axis."""

Problems = dict[ILayer | ITensor | INetworkDefinition | str, Finding]


class LayerBuilder:
    """Adds layers to a net.

    Attributes:
        net: the net.
        captured: the ports of the outer net that are read here, each with the Parameter that stands for it.

    Args:
        problems: collects a finding for everything that OpenVINO cannot express.
        around: the builder of the outer net; None for the outermost.
    """

    def __init__(self, problems: Problems, around: LayerBuilder | None = None) -> None:
        self.net = IrNet()
        self.captured: dict[IrPort, IrLayer] = {}
        self._problems = problems
        self._around = around
        self._ports: dict[Value, IrPort] = {}
        self._constants: dict[Any, IrPort] = {}
        self._again: dict[IrPort, IrPort] = {}
        self._makers: dict[IrPort, IrLayer] = {}
        self._varying: set[IrPort] = set()
        self._name = ""

    def inside(self) -> LayerBuilder:
        """Return a builder for a net nested in this one."""
        return LayerBuilder(self._problems, self)

    # ------------------------------------------------------------------ nodes

    def add_graph(self, graph: OnnxGraph) -> None:
        """Add layers for all nodes of a graph; a node that fails adds a finding."""
        for node in graph.nodes:
            try:
                self._add(node)
            except LayerError as error:
                self._report(node, error)
                self._put_nothing(node.outputs)

    def _add(self, node: OnnxNode) -> None:
        function = EXPORTERS.find(node.op)
        if function is None:
            raise LayerError(
                f"OpenVINO has no operator for {node.op}", "the exporter writes operators of opset 1 to 16"
            )
        self._name = node.name
        inputs = [None if value is None else self.read(value) for value in node.inputs]
        returned = function(self, node, *inputs)
        for value, port in zip(node.outputs, returned if isinstance(returned, tuple) else (returned,), strict=False):
            self.put(value, port)

    def _report(self, node: OnnxNode, error: LayerError) -> None:
        if node.layer is not None:
            self._problems.setdefault(node.layer, node.layer.finding_of(error, CODE))
        else:
            what = f"{node.name!r}: {error.what}"
            self._problems.setdefault(what, Finding(CODE, what, "", error.why, error.fix))

    def _put_nothing(self, values: Sequence[Value]) -> None:
        """Map values to ports without a real layer, so that later nodes can be checked too."""
        for value in values:
            self._ports[value] = IrPort(value.dtype, value.shape)
            self._makers[self._ports[value]] = IrLayer("", "", [], [self._ports[value]], {})

    # ------------------------------------------------------------------ inputs and outputs

    def add_input(self, value: Value, type: TensorType, tensor: ITensor) -> None:
        """Make a value an input of the model."""
        try:
            require(type.is_tensor, f"OpenVINO has no tensors that are a {type}", "its inputs are tensors")
            port = self.parameter(value.name, value.dtype, type.shape).outputs[0]
        except LayerError as error:
            what = f"{tensor.name!r}: {error.what}"
            self._problems[tensor] = Finding(CODE, what, "", error.why, error.fix, at=tensor)
            return self._put_nothing([value])
        port.names = (value.name,)
        return self.put(value, port)

    def add_output(self, value: Value) -> None:
        """Make a value an output of the model. One that is an input or output already is copied: it needs two names."""
        port = self.read(value)
        if port.names not in ((), (value.name,)):
            port = self.copy(port)
        port.names = (value.name,)
        self.result(port, value.name)

    # ------------------------------------------------------------------ values

    def put(self, value: Value, port: IrPort) -> None:
        """Map a value to the port that computes it, whose rank may be known better: sequences are stacked tensors."""
        if port.dtype != value.dtype:
            port = self.cast(port, value.dtype)
        shape, wanted = port.shape, value.shape
        if wanted is not None and (shape is None or (UNKNOWN in shape and len(shape) == len(wanted))):
            port.shape = wanted
        self._ports[value] = port

    def read(self, value: Value) -> IrPort:
        """Return the port of a value in this net; values of outer nets are captured."""
        if value.array is not None:
            return self.constant(value.array)
        if value in self._ports:
            return self._ports[value]
        assert self._around is not None, f"{value.name!r} has no value"
        self._ports[value] = self.capture(self._around.read(value), value.name)
        return self._ports[value]

    def capture(self, outside: IrPort, name: str = "") -> IrPort:
        """Return the port in this net that stands for a port of the outer net.

        What depends on constants only is computed here again. OpenVINO folds it to a Const and moves the Const into all
        nets that read it, but its conversion of int64 to int32 and of bool to uint8 needs Consts of one net: loops got
        other trip counts, or the process ended.
        """
        assert self._around is not None
        if not self._around.varies(outside):
            return self._computed_again(outside, self._around)
        if outside not in self.captured:
            self.captured[outside] = self.parameter(name, outside.dtype, outside.shape)
        return self.captured[outside].outputs[0]

    def _computed_again(self, outside: IrPort, around: LayerBuilder) -> IrPort:
        stack = [outside]
        while stack:
            layer = around.source(stack[-1])
            missing = [port for port in layer.inputs if port not in self._again]
            if missing:
                stack += missing
            else:
                self._again.update(zip(layer.outputs, self._copied(layer), strict=True))
                stack.pop()
        return self._again[outside]

    def _copied(self, layer: IrLayer) -> list[IrPort]:
        """The outputs of a copy of a layer of the outer net."""
        if layer.array is not None:
            return [self.constant(layer.array)]
        ports = [IrPort(port.dtype, port.shape) for port in layer.outputs]
        inputs = [self._again[port] for port in layer.inputs]
        self._add_layer(replace(layer, inputs=inputs, outputs=ports))
        return ports

    # ------------------------------------------------------------------ layers

    def layer(
        self, type: str, version: int, inputs: Sequence[IrPort], outputs: Iterable[IrPort], name: str = "", **data: Any
    ) -> IrLayer:
        """Add a layer."""
        for port in (ports := list(outputs)):
            if element_type(port.dtype) is None:
                what = f"OpenVINO has no tensors of {type_name(port.dtype)}"
                raise LayerError(what, "it is not one of its element types")
        return self._add_layer(IrLayer(type, f"opset{version}", list(inputs), ports, data, name or self._name))

    def _add_layer(self, layer: IrLayer) -> IrLayer:
        self.net.add(layer)
        self._makers.update(dict.fromkeys(layer.outputs, layer))
        if layer.type in ("Parameter", "RandomUniform") or not self._varying.isdisjoint(layer.inputs):
            self._varying.update(layer.outputs)
        return layer

    def op(
        self,
        type: str,
        version: int,
        *inputs: IrPort,
        dtype: np.dtype[Any] | None = None,
        shape: Shape | None = None,
        **data: Any,
    ) -> IrPort:
        """Add a layer with one output, whose element type is by default that of the first input."""
        port = IrPort(inputs[0].dtype if dtype is None else dtype, shape)
        self.layer(type, version, inputs, [port], **data)
        return port

    def pointwise(self, type: str, *inputs: IrPort, version: int = 1, dtype: Any = None, **data: Any) -> IrPort:
        """Add a layer with one output, whose inputs are broadcast to each other.

        OpenVINO writes the output over a first input of its size, even where that shares memory with a Parameter of a
        body. Such an input comes second if the operation is symmetric, and is copied otherwise. A comparison of
        constants of 8 bits overwrote the constant, for the next call; it is made to depend on a random number.
        """
        is_in_place = dtype is None or np.dtype(dtype).itemsize == inputs[0].dtype.itemsize
        if is_in_place and dtype not in (None, inputs[0].dtype) and not any(map(self.varies, inputs)):
            inputs = (self.opaque(inputs[0]), *inputs[1:])
        if is_in_place and self._around is not None and self._is_given(inputs[0]):
            if type in SYMMETRIC and not self._is_given(inputs[1]):
                inputs = inputs[::-1]
            else:
                inputs = (self.copy(inputs[0]), *inputs[1:])
        shape = broadcast_shape(port.shape for port in inputs)
        return self.op(type, version, *inputs, dtype=dtype, shape=shape, auto_broadcast="numpy", **data)

    def parameter(self, name: str, dtype: np.dtype[Any], shape: Shape | None) -> IrLayer:
        """Add a Parameter."""
        lengths = "..." if shape is None else ",".join("?" if length == UNKNOWN else str(length) for length in shape)
        port = IrPort(dtype, shape)
        return self.layer("Parameter", 1, (), [port], name, shape=lengths, element_type=dtype)

    def result(self, port: IrPort, *names: str) -> IrLayer:
        """Add a Result."""
        return self.layer("Result", 1, [port], (), f"{names[0]}/sink_port_0" if names else "result", names=names)

    def constant(self, value: Any, dtype: Any = None) -> IrPort:
        """Return the port of a constant; small equal constants share one layer."""
        numbers: Array = np.asarray(value, dtype)
        same = (numbers.dtype, numbers.shape, numbers.tobytes() if numbers.size <= 32 else id(numbers))
        if same not in self._constants:
            layer = self.layer("Const", 1, (), [IrPort(numbers.dtype, numbers.shape)], "constant")
            layer.array = numbers
            self._constants[same] = layer.outputs[0]
        return self._constants[same]

    # ------------------------------------------------------------------ formulas

    def int64s(self, *numbers: int) -> IrPort:
        """A constant list of integers, int64, 1-D."""
        return self.constant(np.array(numbers, np.int64).reshape(-1))

    def number_like(self, value: Any, x: IrPort) -> IrPort:
        """A constant of the element type of ``x``, 0-D for a number."""
        return self.constant(np.array(value).astype(x.dtype))

    def cast(self, x: IrPort, dtype: Any) -> IrPort:
        """``x`` in another element type; ``x`` itself if it has that type."""
        dtype = np.dtype(dtype)
        if x.dtype == dtype:
            return x
        return self.op("Convert", 1, x, dtype=dtype, shape=x.shape, destination_type=dtype)

    def where(self, condition: IrPort, a: IrPort, b: IrPort) -> IrPort:
        """``a`` where the condition is true, ``b`` elsewhere; floats of 8 bits, refused by the plugin, as float32."""
        if a.dtype in FLOATS_OF_8_BITS:
            return self.cast(self.where(condition, self.cast(a, FLOAT), self.cast(b, FLOAT)), a.dtype)
        return self.pointwise("Select", condition, a, b, dtype=a.dtype)

    def reshape(self, x: IrPort, shape: Sequence[int] | IrPort, zero_copies: bool = False) -> IrPort:
        """``x`` in another shape; with ``zero_copies`` a length of 0 stands for that of ``x``."""
        wanted = shape if isinstance(shape, IrPort) else self.int64s(*shape)
        array, lengths = self.source(x).array, self.ints(wanted)
        if array is not None and lengths is not None and (not zero_copies or 0 not in lengths):
            return self.constant(array.reshape(lengths))
        result = reshaped_shape(x.shape, wanted.shape, lengths, zero_copies)
        return self.op("Reshape", 1, x, wanted, shape=result, special_zero=zero_copies)

    def expand_dims(self, x: IrPort, axes: Sequence[int]) -> IrPort:
        """``x`` with new axes of length 1."""
        return self.op("Unsqueeze", 1, x, self.int64s(*axes), shape=expanded_shape(x.shape, axes))

    def concat(self, parts: Sequence[IrPort], axis: int) -> IrPort:
        """Tensors joined along an axis."""
        return self.op("Concat", 1, *parts, shape=joined_shape([part.shape for part in parts], axis), axis=axis)

    def shape(self, x: IrPort) -> IrPort:
        """The shape of ``x``, int64, 1-D."""
        rank = UNKNOWN if x.shape is None else len(x.shape)
        return self.op("ShapeOf", 3, x, dtype=INT64, shape=(rank,), output_type=INT64)

    def copy(self, x: IrPort) -> IrPort:
        """``x`` in memory of its own."""
        if x.dtype in FLOATS_OF_8_BITS:
            return self.cast(self.cast(x, FLOAT), x.dtype)
        return self.op("LogicalOr" if x.dtype == BOOL else "Maximum", 1, x, x, shape=x.shape, auto_broadcast="numpy")

    def opaque_true(self) -> IrPort:
        """True, computed from a random number, so that OpenVINO cannot fold layers that depend on it.

        While it infers shapes, OpenVINO draws the number and computes most of what follows, but never an IsFinite.
        """
        drawn = self.random_numbers(0)
        return self.op("IsFinite", 10, self.reshape(drawn, ()), dtype=BOOL, shape=())

    def opaque_flag(self, flag: IrPort) -> IrPort:
        """A flag, or if it depends on constants only, the same made to depend on a random number too.

        It is compared: from a flag that is false, OpenVINO infers that a logical and of it is false as well.
        """
        return flag if self.varies(flag) else self.pointwise("Equal", flag, self.opaque_true(), dtype=BOOL)

    def opaque(self, x: IrPort) -> IrPort:
        """``x``, or if it depends on constants only, the same made to depend on a random number too."""
        return x if self.varies(x) else self.where(self.opaque_true(), x, x)

    def random_numbers(self, seed: int, x: IrPort | None = None) -> IrPort:
        """Uniform random numbers from 0 to 1, float32, in the shape of ``x`` or (1,)."""
        bounds = self.constant(0, FLOAT), self.constant(1, FLOAT)
        options: dict[str, Any] = {"output_type": FLOAT, "global_seed": 0, "op_seed": seed}
        lengths, shape = (self.int64s(1), (1,)) if x is None else (self.shape(x), x.shape)
        return self.op("RandomUniform", 8, lengths, *bounds, dtype=FLOAT, shape=shape, **options)

    # ------------------------------------------------------------------ queries

    def varies(self, port: IrPort) -> bool:
        """Whether a port depends on more than constants."""
        return port in self._varying

    def source(self, port: IrPort) -> IrLayer:
        """The layer that computes a port."""
        return self._makers[port]

    def origin(self, port: IrPort) -> IrLayer:
        """The layer whose memory a port may share."""
        layer = self.source(port)
        while layer.type in VIEWS:
            layer = self.source(layer.inputs[0])
        return layer

    def is_transposed(self, port: IrPort) -> bool:
        """Whether a port is a Transpose, perhaps seen through layers behind which OpenVINO moves one."""
        layer = self.source(port)
        while layer.type in VIEWS or layer.type == "Convert":
            layer = self.source(layer.inputs[0])
        return layer.type == "Transpose"

    def _is_given(self, port: IrPort) -> bool:
        return self.origin(port).type == "Parameter"

    def ints(self, x: IrPort) -> list[int] | None:
        """The integers of a constant; None for a computed tensor."""
        array = self.source(x).array
        return None if array is None else [int(value) for value in array.reshape(-1)]


def rank_of(x: IrPort) -> int:
    """The number of axes of a tensor.

    Raises:
        LayerError: it is not known.
    """
    require(x.shape is not None, "the number of its axes is not known")
    return len(x.shape or ())


def open_shape(x: IrPort) -> Shape | None:
    """The shape of ``x`` with all dims unknown."""
    return None if x.shape is None else (UNKNOWN,) * len(x.shape)


def broadcast_shape(shapes: Iterable[Shape | None]) -> Shape | None:
    """The shape that shapes are broadcast to."""
    numbers: list[int] = []
    for shape in shapes:
        if shape is None:
            return None
        numbers = [1] * (len(shape) - len(numbers)) + numbers
        for axis, length in enumerate(shape, len(numbers) - len(shape)):
            if numbers[axis] == 1 or (numbers[axis] == UNKNOWN and length != 1):
                numbers[axis] = length
    return tuple(numbers)


def expanded_shape(shape: Shape | None, axes: Sequence[int]) -> Shape | None:
    """A shape with new axes of length 1."""
    if shape is None:
        return None
    rank = len(shape) + len(axes)
    new, rest = {axis % rank for axis in axes}, iter(shape)
    return tuple(1 if axis in new else next(rest) for axis in range(rank))


def joined_shape(shapes: Sequence[Shape | None], axis: int) -> Shape | None:
    """The shape of tensors joined along an axis."""
    known = [shape for shape in shapes if shape is not None]
    if not known:
        return None
    numbers = list(known[0])
    lengths = [UNKNOWN if shape is None else shape[axis] for shape in shapes]
    numbers[axis] = UNKNOWN if UNKNOWN in lengths else sum(lengths)
    return tuple(numbers)


def reshaped_shape(
    shape: Shape | None, shape_of_wanted: Shape | None, wanted: Sequence[int] | None, zero_copies: bool
) -> Shape | None:
    """The shape after a Reshape, as far as it is known.

    ``wanted`` is the new shape if it is constant, in which 0 may copy the length before, and ``shape_of_wanted`` the
    shape of the input that holds it.
    """
    if wanted is None:
        rank = None if shape_of_wanted is None else shape_of_wanted[0]
        return None if rank in (None, UNKNOWN) else (UNKNOWN,) * rank
    source = shape or ()
    lengths = [
        (source[axis] if axis < len(source) else UNKNOWN) if number == 0 and zero_copies else number
        for axis, number in enumerate(wanted)
    ]
    if lengths.count(UNKNOWN) == 1 and shape is not None and UNKNOWN not in shape:
        rest = int(np.prod([length for length in lengths if length != UNKNOWN], dtype=np.int64))
        total = int(np.prod(shape, dtype=np.int64))
        lengths[lengths.index(UNKNOWN)] = total // rest if rest else 0
    return tuple(lengths)
