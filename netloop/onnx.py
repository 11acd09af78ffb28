"""ONNX models: ``netloop.onnx.load("model.onnx")`` imports one, ``netloop.onnx.save(network, path)`` exports one."""

from netloop.formats.onnx import load as load
from netloop.formats.onnx import operators_page as operators_page
from netloop.formats.onnx import save as save
from netloop.formats.onnx import supports as supports
from netloop.formats.onnx import to_model as to_model
