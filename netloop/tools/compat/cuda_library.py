"""CUDA's runtime library, and TensorRT's, as ``ctypes`` loads them."""

import ctypes
import re
from collections.abc import Callable
from os import PathLike
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
    """A library of TensorRT's, of which scripts want the plugins; those that netloop has are there without it."""

    def __getattr__(self, name: str) -> Callable[..., bool]:
        if name == "initLibNvInferPlugins":
            return lambda *arguments: True
        raise AttributeError(f"netloop's stand-in for TensorRT's library has no {name}", name=name)


LIBRARY: type[Any] = ctypes.PyDLL.__base__ or object
"""``ctypes.CDLL`` itself, whatever stands in for it now."""


class _LoaderType(type):
    """The type of a loader, whose instances are all libraries, and of the classes that derive from it."""

    def __instancecheck__(cls, instance: Any) -> bool:
        libraries = (LIBRARY, CudartLibrary, NvinferLibrary) if "_load" in vars(cls) else ()
        return super().__instancecheck__(instance) or isinstance(instance, libraries)


def library_loader(has_gpu: bool) -> type[Any]:
    """A class that loads libraries as ``ctypes.CDLL`` does now, except TensorRT's, which are stand-ins.

    As ``ctypes.CDLL`` it can be derived from, and is a type in annotations and for ``isinstance``.

    Args:
        has_gpu: whether the process has a GPU; CUDA's runtime is a stand-in too if not.
    """

    class Loader(LIBRARY, metaclass=_LoaderType):
        # without a loader of before: of a thousand, each would call the next
        _load: Callable[..., Any] = staticmethod(getattr(ctypes.CDLL, "_load", ctypes.CDLL))

        def __new__(cls, name: Any = None, *arguments: Any, **named: Any) -> Any:
            if cls is not Loader:
                return super().__new__(cls)
            file = Path(name).name if isinstance(name, str | PathLike) else ""
            if "cudart" in file and not has_gpu:
                return CudartLibrary()
            return NvinferLibrary() if NVINFER.fullmatch(file) else cls._load(name, *arguments, **named)

    Loader.__name__ = Loader.__qualname__ = "CDLL"
    return Loader
