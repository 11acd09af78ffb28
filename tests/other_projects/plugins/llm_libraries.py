"""A plugin of pytest for TensorRT-LLM's tests: a few plugins for its compiled library, and MPI with one process.

Tests that need others of its plugins fail. The classes of its bindings to C++ are names only.
"""

import ctypes
import sys
from enum import Enum
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from llm_plugins import register

LIBRARY = "libnvinfer_plugin_tensorrt_llm.so"
KVCacheType = Enum("KVCacheType", "CONTINUOUS PAGED DISABLED")


class Initializer:
    """The function of the library that registers its plugins."""

    argtypes: Any = None
    restype: Any = None

    def __call__(self, logger: Any, namespace: bytes) -> bool:
        register(namespace.decode())
        return True


class Members(type):
    """The type of a class of which every name is a member: of an enumeration, if it is one."""

    def __getattr__(cls, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return f"{cls.__name__}.{name}"


class Absent(metaclass=Members):
    """A class that does nothing."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        pass


class Names(ModuleType):
    """A module in which every name is that of a class that does nothing."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        cls = Members(name, (Absent,), {"__module__": self.__name__})
        setattr(self, name, cls)
        return cls


def bindings() -> dict[str, ModuleType]:
    """The modules of the bindings, by name."""
    whole, executor, build = (Names(f"tensorrt_llm.bindings{part}") for part in ("", ".executor", ".BuildInfo"))
    own = {"executor": executor, "BuildInfo": build, "KVCacheType": KVCacheType}
    vars(whole).update(own, MpiComm=SimpleNamespace(local_init=lambda: None))
    vars(build).update(ENABLE_MULTI_DEVICE=False)
    return {module.__name__: module for module in (whole, executor, build)}


def driver() -> ModuleType:
    """NVIDIA's library for the state of GPUs, of which there are none."""
    library = Names("pynvml")
    vars(library).update(__version__="12.0.0", nvmlSystemGetDriverVersion=lambda: "550.54.15")
    return library


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    """Let the package be imported."""
    load, communicator = ctypes.CDLL, SimpleNamespace(Get_rank=lambda: 0, Get_size=lambda: 1)
    library = SimpleNamespace(initTrtLlmPlugins=Initializer())
    ctypes.CDLL = lambda name=None, *rest, **named: library if LIBRARY in str(name) else load(name, *rest, **named)
    torch.classes.load_library = lambda path: None
    package = ModuleType("mpi4py")
    package.MPI = SimpleNamespace(COMM_WORLD=communicator)  # pyright: ignore[reportAttributeAccessIssue]
    sys.modules.update({"mpi4py": package, "pynvml": driver(), **bindings()})
