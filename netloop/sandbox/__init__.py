"""Untrusted models: ``netloop.sandbox.load("model.onnx")`` loads, compiles and runs one in a process of its own."""

from netloop.sandbox.errors import SandboxError as SandboxError
from netloop.sandbox.model import SandboxedModel as SandboxedModel
from netloop.sandbox.model import TensorInfo as TensorInfo
from netloop.sandbox.model import load as load
