"""A plugin of pytest for TensorRT-LLM's tests: nothing for its compiled libraries, and MPI with one process.

Tests that need its plugins fail: they are not in the registry.
"""

import ctypes
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

LIBRARY = "libnvinfer_plugin_tensorrt_llm.so"


class Initializer:
    """The function of the library that registers its plugins, and none here."""

    argtypes: Any = None
    restype: Any = None

    def __call__(self, *arguments: Any) -> bool:
        return True


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    """Let the package be imported."""
    load, communicator = ctypes.CDLL, SimpleNamespace(Get_rank=lambda: 0, Get_size=lambda: 1)
    library = SimpleNamespace(initTrtLlmPlugins=Initializer())
    ctypes.CDLL = lambda name=None, *rest, **named: library if LIBRARY in str(name) else load(name, *rest, **named)
    torch.classes.load_library = lambda path: None
    package = ModuleType("mpi4py")
    package.MPI = SimpleNamespace(COMM_WORLD=communicator)  # pyright: ignore[reportAttributeAccessIssue]
    sys.modules["mpi4py"] = package
