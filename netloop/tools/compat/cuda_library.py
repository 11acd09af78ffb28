"""CUDA's runtime library as ``ctypes`` loads it, on host memory."""

import ctypes
from collections.abc import Callable
from typing import Any

from netloop.tools.compat import cuda_runtime

REAL = ctypes.CDLL


class CudartLibrary:
    """The functions of libcudart: results go where ``ctypes.byref`` arguments point, and the status is returned."""

    def __getattr__(self, name: str) -> Callable[..., int]:
        function = getattr(cuda_runtime, name)

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


def load_library(name: Any = None, *arguments: Any, **named: Any) -> Any:
    """Load a library as ``ctypes.CDLL`` does; CUDA's runtime is the stand-in."""
    if isinstance(name, str) and "cudart" in name:
        return CudartLibrary()
    return REAL(name, *arguments, **named)
