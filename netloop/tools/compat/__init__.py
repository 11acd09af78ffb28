"""TensorRT code without a GPU: netloop instead of ``tensorrt``, and CUDA's Python packages on host memory.

    python -m netloop.compat script.py                # a script, unchanged
    python -m netloop.compat --tensorrt 8 script.py   # one that was written for TensorRT 8
    pytest -p netloop.tools.compat.pytest_plugin      # tests of TensorRT code

Where there is a GPU, netloop stands for ``tensorrt`` only: CUDA's packages and PyTorch are those that are installed.

>>> # with netloop.compat.stand_ins(): import tensorrt
"""

import ctypes
import importlib
import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from importlib.machinery import ModuleSpec
from multiprocessing import spawn
from types import ModuleType
from typing import Any, cast
from unittest.mock import patch

from netloop.process.cuda_runtime import has_gpu
from netloop.tools.compat import torch_device
from netloop.tools.compat.cuda_library import library_loader
from netloop.tools.compat.distributions import StandInDistributions
from netloop.tools.compat.versions import VERSIONS, module_of

TENSORRT = ("tensorrt", "tensorrt.tensorrt", "tensorrt_bindings", "tensorrt_libs", "tensorrt_lean", "tensorrt_dispatch")
"""The names under which netloop is TensorRT."""

# fmt: off
STAND_INS = {
    "tensorrt.plugin":       "netloop.tools.compat.tensorrt_plugin",
    "cuda.bindings.runtime": "netloop.tools.compat.cuda_runtime",
    "cuda.bindings.driver":  "netloop.tools.compat.cuda_driver",
    "cuda.bindings.nvrtc":   "netloop.tools.compat.cuda_nvrtc",
    "cuda.core":             "netloop.tools.compat.cuda_core",
    "cuda.core.experimental": "netloop.tools.compat.cuda_core",
    "cuda.cudart":           "netloop.tools.compat.cuda_runtime",
    "cuda.cuda":             "netloop.tools.compat.cuda_driver",
    "cuda.nvrtc":            "netloop.tools.compat.cuda_nvrtc",
    "pycuda.driver":         "netloop.tools.compat.pycuda_driver",
    "pycuda.autoinit":       "netloop.tools.compat.pycuda_autoinit",
    "pycuda.autoprimaryctx": "netloop.tools.compat.pycuda_autoinit",
    "pycuda.compiler":       "netloop.tools.compat.pycuda_compiler",
    "pycuda.gpuarray":       "netloop.tools.compat.pycuda_gpuarray",
    "pycuda.tools":          "netloop.tools.compat.pycuda_tools",
}
# fmt: on
"""The modules that stand for others."""

PACKAGES = ("cuda", "cuda.bindings", "pycuda")
"""The packages that have such modules, and nothing else."""


def install(tensorrt: int = 11) -> None:
    """Make imports of TensorRT and CUDA's packages give the stand-ins, until the process ends.

    Modules of these names that were imported before stay with those who imported them. PyTorch's device ``cuda`` is the
    host then. Where the process has a GPU, there are no stand-ins but those of ``tensorrt`` and TensorRT's libraries.

    Args:
        tensorrt: the major version of TensorRT whose names ``tensorrt`` has: 7 to 11.

    Raises:
        ValueError: it is no such version.
    """
    sys.modules.update(_modules(tensorrt))
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, StandInDistributions)]
    sys.meta_path.insert(0, _distributions(tensorrt))
    for name, loader in _loaders().items():
        setattr(ctypes, name, loader)
    spawn.get_preparation_data = partial(_preparation_data, tensorrt)
    if not has_gpu():
        torch_device.install()


@contextmanager
def stand_ins(tensorrt: int = 11) -> Generator[None]:
    """A context in which imports of TensorRT and CUDA's packages give the stand-ins.

    Args:
        tensorrt: the major version of TensorRT whose names ``tensorrt`` has: 7 to 11.

    Raises:
        ValueError: it is no such version.
    """
    finders = [_distributions(tensorrt), *sys.meta_path]
    with (
        patch.dict(sys.modules, _modules(tensorrt)),
        patch.dict(vars(ctypes), _loaders()),
        patch.object(sys, "meta_path", finders),
        patch.object(spawn, "get_preparation_data", partial(_preparation_data, tensorrt)),
    ):
        yield


class StandIns:
    """The stand-ins for a version of TensorRT in another process, which has them when it reads this object."""

    def __init__(self, version: int) -> None:
        self._version = version

    def __reduce__(self) -> tuple[Any, ...]:
        return install, (self._version,)


preparation_data = spawn.get_preparation_data
"""The function of ``multiprocessing`` for the data that a process reads before it imports the script anew."""


def _preparation_data(version: int, name: str) -> dict[str, Any]:
    return {"netloop": StandIns(version), **preparation_data(name)}


def _loaders() -> dict[str, Any]:
    """The names by which scripts load libraries with ``ctypes``."""
    load = library_loader(has_gpu())
    return {"CDLL": load, "cdll": ctypes.LibraryLoader(cast(Any, load))}


def _modules(version: int) -> dict[str, ModuleType]:
    if version not in VERSIONS:
        raise ValueError(f"tensorrt is the major version of TensorRT, one of {VERSIONS}, and not {version!r}")
    modules = dict.fromkeys(TENSORRT, module_of(version))
    names = [name for name in STAND_INS if not has_gpu() or name.startswith("tensorrt")]
    modules |= {name: importlib.import_module(STAND_INS[name]) for name in names}
    for name in () if has_gpu() else PACKAGES:
        modules[name] = package = ModuleType(name, "A package of CUDA's for Python, as netloop stands in for it.")
        package.__path__ = []
        package.__spec__ = ModuleSpec(name, None, is_package=True)  # of which importlib.util.find_spec asks
    for name, module in modules.items():
        parent, _, last = name.rpartition(".")
        if parent in PACKAGES:
            setattr(modules[parent], last, module)
    return modules


def _distributions(version: int) -> StandInDistributions:
    return StandInDistributions(module_of(version).__version__, has_gpu())
