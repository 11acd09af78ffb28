"""Quantized models as tools write them: pairs of QuantizeLinear and DequantizeLinear around each operator."""

from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper


class QuantizedGraph:
    """A graph of float32 operators between pairs of quantization and dequantization."""

    def __init__(self, dtype: Any, zero: int, seed: int = 0) -> None:
        self.dtype, self.zero = np.dtype(dtype), zero
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def constant(self, array: Any) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def add(self, op: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        output = output or f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def pair(self, x: str, scale: float, zero: int | None = None) -> str:
        """``x`` quantized and dequantized."""
        given = self.constant(np.float32(scale)), self.constant(self.dtype.type(self.zero if zero is None else zero))
        return self.add("DequantizeLinear", self.add("QuantizeLinear", x, *given), *given)

    def convolution(
        self, x: str, channels: int, maps: int, size: int, *, groups: int = 1, per_channel: bool = True, **named: Any
    ) -> str:
        """A convolution by int8 weights, and a bias in int32."""
        kernel = self.random.integers(-127, 128, (maps, channels // groups, size, size)).astype(np.int8)
        count = (maps,) if per_channel else ()
        scale = (self.random.uniform(0.5, 1.5, count) / 128).astype(np.float32)
        none = self.constant(np.zeros(count, np.int8))
        weights = self.add("DequantizeLinear", self.constant(kernel), self.constant(scale), none, axis=0)
        bias = self.random.integers(-3000, 3000, maps).astype(np.int32)
        added = self.add("DequantizeLinear", self.constant(bias), self.constant(np.float32(1e-3)))
        return self.add("Conv", x, weights, added, group=groups, **named)

    def model(self, x: tuple[int, ...], output: str) -> onnx.ModelProto:
        value = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)]
        made = [onnx.ValueInfoProto(name=output)]
        graph = helper.make_graph(self.nodes, "quantized", value, made, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def quantized_block(
    dtype: Any = np.uint8, zero: int = 100, *, per_channel: bool = True, channels: int = 6, maps: int = 8, seed: int = 0
) -> onnx.ModelProto:
    """y: a product, a depthwise convolution, hard swish and a sum, as in MobileNets, of x [1, channels, 7, 8]."""
    graph = QuantizedGraph(dtype, zero, seed)
    x = graph.pair("x", 0.05)
    a = graph.pair(graph.convolution(x, channels, maps, 1, per_channel=per_channel), 0.3)
    gate = graph.pair(graph.add("HardSigmoid", a, alpha=1 / 6, beta=0.5), 1 / 128)
    b = graph.pair(graph.add("Mul", a, gate), 0.2)
    c = graph.pair(graph.convolution(b, maps, maps, 3, groups=maps, per_channel=per_channel, pads=[1, 1, 1, 1]), 0.4)
    d = graph.pair(graph.convolution(c, maps, maps, 1, per_channel=per_channel), 0.9)
    return graph.model((1, channels, 7, 8), graph.add("Add", d, b, output="y"))


@st.composite
def quantized_blocks(draw: Any) -> onnx.ModelProto:
    """Blocks of any type, zero point, scales and sizes."""
    dtype = draw(st.sampled_from([np.uint8, np.int8]))
    limits = np.iinfo(dtype)
    zero = draw(st.sampled_from([0, int(limits.max), int(limits.min), 3]))
    return quantized_block(
        dtype, zero, per_channel=draw(st.booleans()), channels=draw(st.integers(1, 5)), maps=draw(st.integers(1, 5)),
        seed=draw(st.integers(0, 9)),
    )  # fmt: skip
