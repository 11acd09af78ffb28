"""ONNX models: ``netloop.onnx.load("model.onnx")`` imports one, ``netloop.onnx.save(network, path)`` exports one."""

from importlib.util import find_spec

if find_spec("onnx") is None:
    raise ModuleNotFoundError("netloop.onnx needs the package onnx: pip install 'netloop[onnx]'", name="onnx")

from netloop.formats.onnx.exporter import save as save
from netloop.formats.onnx.exporter import to_model as to_model
from netloop.formats.onnx.importer.load import load as load
from netloop.formats.onnx.importer.operators import supports as supports
from netloop.formats.onnx.operator_page import operators_page as operators_page
