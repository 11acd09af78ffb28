"""The exchange between ranks, of which there is one."""

from netloop.diagnostics import require
from netloop.layers.collective import IDistCollectiveLayer
from netloop.onnx.save.graph import Value
from netloop.onnx.save.make import Make
from netloop.onnx.save.table import exports


@exports(IDistCollectiveLayer)
def dist_collective(layer: IDistCollectiveLayer, make: Make, x: Value) -> Value:
    require(
        layer.num_ranks == 1,
        f"{layer.name!r} exchanges tensors between {layer.num_ranks} ranks",
        "an ONNX model runs on one",
    )
    return x
