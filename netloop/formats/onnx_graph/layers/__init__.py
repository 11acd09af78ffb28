"""The exporters of layers, one file for each operator family; importing a file registers its exporters."""

from importlib import import_module
from pkgutil import iter_modules

from netloop.formats.onnx_graph.exporter_table import exports as exports
from netloop.formats.onnx_graph.graph import Value as Value
from netloop.formats.onnx_graph.node_builder import BOOL as BOOL
from netloop.formats.onnx_graph.node_builder import FLOAT as FLOAT
from netloop.formats.onnx_graph.node_builder import INT64 as INT64
from netloop.formats.onnx_graph.node_builder import NodeBuilder as NodeBuilder

FAMILIES = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
"""The modules of the families."""
