"""Plugins, which cannot be exported."""

from netloop.formats.onnx_graph.layers import NodeBuilder, Value, exports
from netloop.model.layers.plugin import IPluginV3Layer
from netloop.values.diagnostics import LayerError


@exports(IPluginV3Layer)
def plugin(layer: IPluginV3Layer, make: NodeBuilder, *inputs: Value) -> Value:
    raise LayerError(
        f"{layer.name!r} is a plugin, and cannot be written as ONNX",
        "it runs Python code, for which ONNX has no operator",
        "save a plan, or replace it by layers",
    )
