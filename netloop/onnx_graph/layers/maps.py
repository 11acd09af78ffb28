"""Maps."""

import numpy as np

from netloop.diagnostics import require
from netloop.layers.maps import IMapLayer, IMapLookupLayer
from netloop.onnx_graph.exporter_table import exports
from netloop.onnx_graph.graph import Value
from netloop.onnx_graph.node_builder import NodeBuilder

WHY = (
    "the operators for maps, ZipMap, DictVectorizer and CastMap, are in the domain ai.onnx.ml, which netloop only loads"
)


@exports(IMapLayer, IMapLookupLayer)
def no_maps(layer: IMapLayer | IMapLookupLayer, make: NodeBuilder, *inputs: Value | None) -> Value:
    require(False, "ONNX's own operators make and read no maps", WHY)
    return Value(np.dtype(np.float32))
