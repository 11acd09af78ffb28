"""Untrusted models: ``netloop.sandbox.load("model.onnx")`` loads, compiles and runs one in a process of its own."""

from netloop.tools.sandbox import SandboxedModel, SandboxError, TensorInfo, load

__all__ = ["SandboxError", "SandboxedModel", "TensorInfo", "load"]
