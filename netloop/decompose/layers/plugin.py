"""Plugins, which are code."""

from netloop.decompose.graph import Value
from netloop.decompose.make import Make
from netloop.decompose.table import exports
from netloop.diagnostics import LayerError
from netloop.layers.plugin import IPluginV3Layer


@exports(IPluginV3Layer)
def plugin(layer: IPluginV3Layer, make: Make, *inputs: Value) -> Value:
    raise LayerError(
        f"{layer.name!r} is a plugin, and cannot be written as ONNX",
        "what it computes is Python code, and no operators of ONNX",
        "save a plan, or make it of layers",
    )
