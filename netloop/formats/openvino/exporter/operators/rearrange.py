"""Reshape, transpose, concatenate, broadcast."""

from netloop.formats.openvino.exporter.layer_builder import broadcast_shape, expanded_shape
from netloop.formats.openvino.exporter.operators import IrPort, LayerBuilder, OnnxNode, exports
from netloop.formats.openvino.exporter.operators.sources import filled_shape


@exports("Reshape")
def reshape(build: LayerBuilder, node: OnnxNode, x: IrPort, shape: IrPort) -> IrPort:
    return build.reshape(x, shape, zero_copies=not node.attributes.get("allowzero"))


@exports("Squeeze")
def squeeze(build: LayerBuilder, node: OnnxNode, x: IrPort, axes: IrPort) -> IrPort:
    dropped, rank = build.ints(axes), len(x.shape or ())
    shape = None
    if dropped is not None and x.shape is not None:
        places = {axis % rank for axis in dropped}
        shape = tuple(length for axis, length in enumerate(x.shape) if axis not in places)
    return build.op("Squeeze", 1, x, axes, shape=shape)


@exports("Unsqueeze")
def unsqueeze(build: LayerBuilder, node: OnnxNode, x: IrPort, axes: IrPort) -> IrPort:
    numbers = build.ints(axes)
    if numbers == []:
        return x
    return build.op("Unsqueeze", 1, x, axes, shape=None if numbers is None else expanded_shape(x.shape, numbers))


@exports("Transpose")
def transpose(build: LayerBuilder, node: OnnxNode, x: IrPort) -> IrPort:
    order = node.attributes["perm"]
    shape = None if x.shape is None else tuple(x.shape[axis] for axis in order)
    return build.op("Transpose", 1, x, build.int64s(*order), shape=shape)


@exports("Concat")
def concat(build: LayerBuilder, node: OnnxNode, *parts: IrPort) -> IrPort:
    return build.concat(parts, node.attributes["axis"])


@exports("Expand")
def expand(build: LayerBuilder, node: OnnxNode, x: IrPort, lengths: IrPort) -> IrPort:
    """The tensor and a shape broadcast to each other. OpenVINO ends the process at a shape without axes."""
    if build.ints(lengths) == []:
        return x
    shape = broadcast_shape((x.shape, filled_shape(build, lengths)))
    return build.op("Broadcast", 3, x, lengths, shape=shape, mode="bidirectional")
