"""The exchange between ranks, of which there is one."""

from netloop.decompose.graph import Value
from netloop.decompose.make import Make
from netloop.decompose.table import exports
from netloop.diagnostics import require
from netloop.layers.collective import IDistCollectiveLayer


@exports(IDistCollectiveLayer)
def dist_collective(layer: IDistCollectiveLayer, make: Make, x: Value) -> Value:
    require(
        layer.num_ranks == 1,
        f"{layer.name!r} exchanges tensors between {layer.num_ranks} ranks",
        "an ONNX model runs on one",
    )
    return x
