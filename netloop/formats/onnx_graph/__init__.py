"""Networks as graphs of operators, for exporters: each layer by operators of ONNX, each loop by one ``Loop``."""

from netloop.formats.onnx_graph.layers import FAMILIES as FAMILIES
