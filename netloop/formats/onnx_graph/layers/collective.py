"""Distributed collectives, for one rank."""

from netloop.formats.onnx_graph.exporter_table import exports
from netloop.formats.onnx_graph.graph import Value
from netloop.formats.onnx_graph.node_builder import NodeBuilder
from netloop.model.layers.collective import IDistCollectiveLayer
from netloop.values.diagnostics import require


@exports(IDistCollectiveLayer)
def dist_collective(layer: IDistCollectiveLayer, make: NodeBuilder, x: Value) -> Value:
    require(
        layer.num_ranks == 1,
        f"{layer.name!r} exchanges tensors between {layer.num_ranks} ranks",
        "an ONNX model runs on one rank",
    )
    return x
