"""ONNX models: networks as files that other systems read."""

from netloop.onnx.save import save as save
from netloop.onnx.save import to_model as to_model
