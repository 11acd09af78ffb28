"""ONNX models: ``netloop.onnx.load("model.onnx")`` imports one, ``netloop.onnx.save(network, path)`` exports one."""

from netloop.formats.onnx import load, operators_page, save, supports, to_model

__all__ = ["load", "operators_page", "save", "supports", "to_model"]
