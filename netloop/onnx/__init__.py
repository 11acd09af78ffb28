"""ONNX models as networks: ``netloop.onnx.load("model.onnx")``."""

from importlib.util import find_spec

if find_spec("onnx") is None:
    raise ModuleNotFoundError("netloop.onnx needs the package onnx: pip install 'netloop[onnx]'", name="onnx")

from netloop.onnx.load import load as load
from netloop.onnx.operators import supports as supports
