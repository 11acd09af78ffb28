"""Run a script as ``python -m netloop.compat`` does, on a machine that seems to have a GPU.

``python -m tests.other_projects.faked_device [--tensorrt VERSION] SCRIPT`` has CUDA's runtime of
``tests.support.fake_cuda``: memory of the device that the host must not touch, and streams whose work waits. Engines
get the addresses that they get on a GPU.
"""

import sys
from enum import IntEnum
from types import ModuleType
from typing import Any

import pytest

from netloop.tools import compat
from netloop.tools.compat import command
from tests.support import fake_cuda


class Kind(IntEnum):
    """The directions of copies that scripts name."""

    cudaMemcpyHostToHost = 0
    cudaMemcpyHostToDevice = 1
    cudaMemcpyDeviceToHost = 2
    cudaMemcpyDeviceToDevice = 3
    cudaMemcpyDefault = 4


class Runtime(fake_cuda.FakeCuda):
    """The fake runtime with the functions that only scripts call."""

    cudaMemcpyKind = Kind

    def __init__(self) -> None:
        super().__init__()
        self.streams[0] = self.streams[1]  # the default stream has both numbers

    def cudaMemcpy(self, dst: Any, src: Any, count: int, kind: Any) -> tuple[int]:
        """Copy in the order of the default stream, and wait."""
        (status,) = self.cudaMemcpyAsync(dst, src, count, kind, 0)
        self.cudaStreamSynchronize(0)
        return (status,)


def main(arguments: list[str]) -> int:
    """Run the script that the arguments name."""
    with pytest.MonkeyPatch.context() as patch:
        runtime = fake_cuda.install(patch, Runtime)
        patch.setattr(compat, "has_gpu", lambda: True)
        for name in ("cuda", "cuda.bindings"):
            package = ModuleType(name)
            package.__path__ = []
            patch.setitem(sys.modules, name, package)
        for name in ("cuda.cudart", "cuda.bindings.runtime"):
            parent, _, last = name.rpartition(".")
            setattr(sys.modules[parent], last, runtime)
            patch.setitem(sys.modules, name, runtime)
        return command.main(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
