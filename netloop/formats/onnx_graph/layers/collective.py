"""Distributed collectives, for one rank."""

from netloop.formats.onnx_graph.layers import NodeBuilder, Value, exports
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
