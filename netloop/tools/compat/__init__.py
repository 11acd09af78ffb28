"""TensorRT code without a GPU: netloop instead of ``tensorrt``, and CUDA's Python packages on host memory.

    python -m netloop.compat script.py    # a script, unchanged
    pytest -p netloop.tools.compat.pytest_plugin  # tests of TensorRT code

Where there is a GPU, netloop stands for ``tensorrt`` only: CUDA's packages and PyTorch are those that are installed.

>>> # with netloop.compat.stand_ins(): import tensorrt
"""

import ctypes
import importlib
import sys
from collections.abc import Generator
from contextlib import contextmanager
from types import ModuleType
from unittest.mock import patch

from netloop.process.cuda_runtime import has_gpu
from netloop.tools.compat import torch_device
from netloop.tools.compat.cuda_library import load_library

# fmt: off
STAND_INS = {
    "tensorrt":              "netloop.tensorrt",
    "tensorrt.tensorrt":     "netloop.tensorrt",
    "tensorrt_lean":         "netloop.tensorrt",
    "tensorrt_dispatch":     "netloop.tensorrt",
    "cuda.bindings.runtime": "netloop.tools.compat.cuda_runtime",
    "cuda.bindings.driver":  "netloop.tools.compat.cuda_driver",
    "cuda.bindings.nvrtc":   "netloop.tools.compat.cuda_nvrtc",
    "cuda.cudart":           "netloop.tools.compat.cuda_runtime",
    "cuda.cuda":             "netloop.tools.compat.cuda_driver",
    "cuda.nvrtc":            "netloop.tools.compat.cuda_nvrtc",
    "pycuda.driver":         "netloop.tools.compat.pycuda_driver",
    "pycuda.autoinit":       "netloop.tools.compat.pycuda_autoinit",
}
# fmt: on
"""The modules that stand for others."""

PACKAGES = ("cuda", "cuda.bindings", "pycuda")
"""The packages that have such modules, and nothing else."""


def install() -> None:
    """Make imports of TensorRT and CUDA's packages give the stand-ins, until the process ends.

    Modules of these names that were imported before stay with those who imported them. PyTorch's device ``cuda`` is the
    host then. Where the process has a GPU, there are no stand-ins but that of ``tensorrt``.
    """
    sys.modules.update(_modules())
    if not has_gpu():
        setattr(ctypes, "CDLL", load_library)  # noqa: B010 (the type of CDLL is that of a class)
        torch_device.install()


@contextmanager
def stand_ins() -> Generator[None]:
    """A context in which imports of TensorRT and CUDA's packages give the stand-ins."""
    library = ctypes.CDLL if has_gpu() else load_library
    with patch.dict(sys.modules, _modules()), patch.object(ctypes, "CDLL", library):
        yield


def _modules() -> dict[str, ModuleType]:
    names = [name for name in STAND_INS if not has_gpu() or name.startswith("tensorrt")]
    modules = {name: importlib.import_module(STAND_INS[name]) for name in names}
    for name in () if has_gpu() else PACKAGES:
        modules[name] = package = ModuleType(name, "A package of CUDA's for Python, as netloop stands in for it.")
        package.__path__ = []
    for name, module in modules.items():
        parent, _, last = name.rpartition(".")
        if parent in PACKAGES:
            setattr(modules[parent], last, module)
    return modules
