"""The exporters of ONNX nodes, one file for each operator family; importing a file registers its exporters."""

from importlib import import_module
from pkgutil import iter_modules

from netloop.formats.onnx_graph.graph import OnnxNode as OnnxNode
from netloop.formats.onnx_graph.node_builder import BOOL as BOOL
from netloop.formats.onnx_graph.node_builder import FLOAT as FLOAT
from netloop.formats.onnx_graph.node_builder import INT64 as INT64
from netloop.formats.openvino.exporter.ir import IrPort as IrPort
from netloop.formats.openvino.exporter.layer_builder import LayerBuilder as LayerBuilder
from netloop.formats.openvino.exporter.operator_table import exports as exports

FAMILIES = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
"""The modules of the families."""
