"""Untrusted models: ``netloop.sandbox.load("model.onnx")`` loads, compiles and runs one in a process of its own."""

from netloop.tools.sandbox import SandboxedModel as SandboxedModel
from netloop.tools.sandbox import SandboxError as SandboxError
from netloop.tools.sandbox import TensorInfo as TensorInfo
from netloop.tools.sandbox import load as load
