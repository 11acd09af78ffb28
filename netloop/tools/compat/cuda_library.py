"""CUDA's runtime library, and TensorRT's, as ``ctypes`` loads them."""

import ctypes
import inspect
import re
from collections.abc import Callable
from functools import update_wrapper
from pathlib import Path
from typing import Any

from netloop.tools.compat import cuda_runtime

NVINFER = re.compile(r"(lib)?nvinfer(_plugin|_vc_plugin|_lean|_dispatch)?(_\d+)?\.(so|dll)(\.\d+)*")
"""The names of TensorRT's libraries."""


ANSWERS = ("cudaGetErrorName", "cudaGetErrorString")
"""The functions that return no status."""


class CudartLibrary:
    """The functions of libcudart: results go where ``ctypes.byref`` arguments point, and the status is returned.

    Args:
        runtime: the module with the functions as CUDA's package for Python has them.
    """

    def __init__(self, runtime: Any = cuda_runtime) -> None:
        self._runtime = runtime

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(self._runtime, name)
        if name in ANSWERS:
            return lambda status: function(getattr(status, "value", status))[1]

        def call(*arguments: Any) -> int:
            targets = [argument._obj for argument in arguments if hasattr(argument, "_obj")]
            outcome = [
                getattr(argument, "value", argument) or 0 for argument in arguments if not hasattr(argument, "_obj")
            ]
            status, *results = function(*outcome)
            for target, result in zip(targets, results, strict=True):
                target.value = result
            return int(status)

        return call


class NvinferLibrary:
    """A library of TensorRT's, of which scripts want the plugins; netloop has none of TensorRT's own plugins."""

    def __getattr__(self, name: str) -> Callable[..., bool]:
        if name == "initLibNvInferPlugins":
            return lambda *arguments: True
        raise AttributeError(f"netloop's stand-in for TensorRT's library has no {name}", name=name)


def library_loader(has_gpu: bool) -> Callable[..., Any]:
    """A function that loads libraries as ``ctypes.CDLL`` does now, except TensorRT's, which are stand-ins.

    Args:
        has_gpu: whether the process has a GPU; CUDA's runtime is a stand-in too if not.
    """
    # without a loader of before: of a thousand, each would call the next
    load = inspect.unwrap(ctypes.CDLL)

    def load_library(name: Any = None, *arguments: Any, **named: Any) -> Any:
        if isinstance(name, str) and "cudart" in name and not has_gpu:
            return CudartLibrary()
        if isinstance(name, str) and NVINFER.fullmatch(Path(name).name):
            return NvinferLibrary()
        return load(name, *arguments, **named)

    return update_wrapper(load_library, load, updated=())
