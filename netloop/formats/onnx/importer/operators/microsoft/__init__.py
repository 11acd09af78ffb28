"""The operators of onnxruntime, which its optimizer, quantizer and exporters write."""

from importlib import import_module
from pkgutil import iter_modules

from netloop.formats.onnx.importer.call import Maybe as Maybe
from netloop.formats.onnx.importer.call import NodeCall as NodeCall
from netloop.formats.onnx.importer.operator_table import microsoft as microsoft
from netloop.formats.onnx.importer.operators.gather import gather_nd
from netloop.formats.onnx.importer.operators.grid_sample import grid_sample
from netloop.formats.onnx.importer.operators.matrix import triangle
from netloop.formats.onnx.importer.operators.padding import pad
from netloop.formats.onnx.importer.operators.quantize import dequantize, quantize

SAME = {
    "DequantizeLinear": dequantize,
    "GatherND": gather_nd,
    "GridSample": grid_sample,
    "Pad": pad,
    "QuantizeLinear": quantize,
    "Trilu": triangle,
}
"""The operators that the standard has under the same name."""

for _name, _function in SAME.items():
    microsoft(_name)(_function)
for _family in iter_modules(__path__):
    import_module(f"{__name__}.{_family.name}")
