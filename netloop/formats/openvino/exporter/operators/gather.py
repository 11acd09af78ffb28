"""Elements read and written by index."""

from typing import Any

from netloop.formats.openvino.exporter.operators import INT64, IrPort, LayerBuilder, OnnxNode, exports
from netloop.formats.shared.word_tables import SCATTER_REDUCTIONS
from netloop.values.types import UNKNOWN


@exports("Gather")
def gather(build: LayerBuilder, node: OnnxNode, x: IrPort, indices: IrPort) -> IrPort:
    axis, shape = node.attributes["axis"], None
    if x.shape is not None and indices.shape is not None:
        place = axis % len(x.shape)
        shape = (*x.shape[:place], *indices.shape, *x.shape[place + 1 :])
    return build.op("Gather", 8, x, indices, build.constant(axis, INT64), shape=shape, batch_dims=0)


@exports("GatherElements")
def gather_elements(build: LayerBuilder, node: OnnxNode, x: IrPort, indices: IrPort) -> IrPort:
    return build.op("GatherElements", 6, x, indices, shape=indices.shape, axis=node.attributes["axis"])


@exports("GatherND")
def gather_nd(build: LayerBuilder, node: OnnxNode, x: IrPort, indices: IrPort) -> IrPort:
    shape, batch = None, node.attributes.get("batch_dims", 0)
    if x.shape is not None and indices.shape is not None and indices.shape[-1] != UNKNOWN:
        shape = (*indices.shape[:-1], *x.shape[batch + indices.shape[-1] :])
    return build.op("GatherND", 8, x, indices, shape=shape, batch_dims=batch)


@exports("ScatterElements")
def scatter_elements(build: LayerBuilder, node: OnnxNode, x: IrPort, indices: IrPort, updates: IrPort) -> IrPort:
    axis = build.constant(node.attributes["axis"], INT64)
    values = _reduction(node)
    return build.op("ScatterElementsUpdate", 12 if values else 3, x, indices, updates, axis, shape=x.shape, **values)


@exports("ScatterND")
def scatter_nd(build: LayerBuilder, node: OnnxNode, x: IrPort, indices: IrPort, updates: IrPort) -> IrPort:
    values = _reduction(node)
    return build.op("ScatterNDUpdate", 15 if values else 4, x, indices, updates, shape=x.shape, **values)


def _reduction(node: OnnxNode) -> dict[str, Any]:
    """The attribute for a reduction; none if there is no reduction."""
    word = node.attributes.get("reduction")
    return {} if word is None else {"reduction": SCATTER_REDUCTIONS.onnx_to_openvino[word]}
