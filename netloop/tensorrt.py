"""netloop under TensorRT's version number: ``import netloop.tensorrt as trt`` for scripts that read the version.

TensorRT's own package has a module of this name with all of its names, and some scripts write ``trt.tensorrt.ILayer``.
"""

import importlib
from typing import Any

import netloop
from netloop import *  # noqa: F403

__version__ = "11.4.0.106"
"""The release of TensorRT that the names match."""


def __getattr__(name: str) -> Any:
    if name == "Severity":
        raise AttributeError("TensorRT has no Severity of its own, but Logger.Severity", name=name)
    if name == "plugin":
        return importlib.import_module("netloop.tools.compat.tensorrt_plugin")
    return getattr(netloop, name)
