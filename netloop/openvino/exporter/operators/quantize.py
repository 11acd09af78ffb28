"""Quantisation, as the products and roundings that it is."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from netloop.diagnostics import require
from netloop.onnx_graph.graph import Node
from netloop.onnx_graph.node_builder import FLOAT
from netloop.openvino.exporter.layer_builder import LayerBuilder
from netloop.openvino.exporter.net import Port
from netloop.openvino.exporter.operator_table import says
from netloop.openvino.exporter.operators.pointwise import clip, paired


@says("QuantizeLinear")
def quantize(build: LayerBuilder, node: Node, x: Port, scale: Port) -> Port:
    """X / scale, rounded to an element type and kept within its bounds."""
    to = node.attributes["output_dtype"]
    steps = paired(build, "Divide", x, _spread(build, node, x, scale), m_pythondiv=False)
    if jnp.issubdtype(to, jnp.integer):
        steps = build.op("Round", 5, steps, shape=steps.shape, mode="half_to_even")
    limits = jnp.iinfo(to) if jnp.issubdtype(to, jnp.integer) else jnp.finfo(to)
    bounds = (build.constant(np.float32(each)) for each in (limits.min, limits.max))
    return build.cast(clip(build, node, steps, *bounds), to)


@says("DequantizeLinear")
def dequantize(build: LayerBuilder, node: Node, x: Port, scale: Port) -> Port:
    """X * scale."""
    wide, own = build.cast(x, FLOAT), build.cast(_spread(build, node, x, scale), FLOAT)
    return build.cast(paired(build, "Multiply", wide, own), scale.dtype)


def _spread(build: LayerBuilder, node: Node, x: Port, scale: Port) -> Port:
    """The scales in a shape that stretches to the tensor."""
    given = node.attributes
    if scale.shape == ():
        return scale
    require(x.shape is not None, "the number of its axes is not known")
    assert x.shape is not None
    rank, axis = len(x.shape), given.get("axis", 1)
    size = given.get("block_size", 0)
    if not size:
        return build.reshape(scale, build.ints(*(-1 if each == axis % rank else 1 for each in range(rank))))
    if size == 1:
        return scale
    places = build.constant(np.arange(x.shape[axis], dtype=np.int64) // size)
    return build.op("Gather", 8, scale, places, build.constant(np.int64(axis)), shape=x.shape, batch_dims=0)
