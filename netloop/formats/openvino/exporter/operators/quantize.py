"""Quantization, written as products and roundings."""

import jax.numpy as jnp
import numpy as np

from netloop.formats.openvino.exporter.layer_builder import rank_of
from netloop.formats.openvino.exporter.operators import FLOAT, IrPort, LayerBuilder, OnnxNode, exports
from netloop.formats.openvino.exporter.operators.pointwise import clip


@exports("QuantizeLinear")
def quantize(build: LayerBuilder, node: OnnxNode, x: IrPort, scale: IrPort) -> IrPort:
    to = node.attributes["output_dtype"]
    codes = build.pointwise("Divide", x, _broadcastable(build, node, x, scale), m_pythondiv=False)
    if jnp.issubdtype(to, jnp.integer):
        codes = build.op("Round", 5, codes, shape=codes.shape, mode="half_to_even")
    limits = jnp.iinfo(to) if jnp.issubdtype(to, jnp.integer) else jnp.finfo(to)
    bounds = (build.constant(np.float32(number)) for number in (limits.min, limits.max))
    return build.cast(clip(build, node, codes, *bounds), to)


@exports("DequantizeLinear")
def dequantize(build: LayerBuilder, node: OnnxNode, x: IrPort, scale: IrPort) -> IrPort:
    wide, own = build.cast(x, FLOAT), build.cast(_broadcastable(build, node, x, scale), FLOAT)
    return build.cast(build.pointwise("Multiply", wide, own), scale.dtype)


def _broadcastable(build: LayerBuilder, node: OnnxNode, x: IrPort, scale: IrPort) -> IrPort:
    """The scales in a shape that broadcasts to the tensor."""
    if scale.shape == ():
        return scale
    rank, axis, size = rank_of(x), node.attributes.get("axis", 1), node.attributes.get("block_size", 0)
    if not size:
        return build.reshape(scale, [-1 if index == axis % rank else 1 for index in range(rank)])
    if size == 1:
        return scale
    assert x.shape is not None
    places = build.constant(np.arange(x.shape[axis], dtype=np.int64) // size)
    return build.op("Gather", 8, scale, places, build.constant(np.int64(axis)), shape=x.shape, batch_dims=0)
