"""Untrusted models: ``netloop.sandbox.load("model.onnx")`` loads, compiles and runs one in a process of its own."""

from netloop.tools.sandbox.errors import SandboxError as SandboxError
from netloop.tools.sandbox.model import SandboxedModel as SandboxedModel
from netloop.tools.sandbox.model import TensorInfo as TensorInfo
from netloop.tools.sandbox.model import load as load
