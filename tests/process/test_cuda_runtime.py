"""CUDA's runtime is called where it is, and whatever stands for it."""

import gc
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from netloop import ExecutionError
from netloop.process import cuda_runtime as module
from netloop.process.cuda_runtime import PAGEABLE, MemoryKind, cuda_runtime, has_gpu, shared_array
from netloop.process.host_memory import BadAddress
from tests.support import fake_cuda


@pytest.fixture
def cuda(monkeypatch):
    """The fake runtime."""
    return fake_cuda.install(monkeypatch)


@pytest.mark.skipif(has_gpu(), reason="there is a GPU")
def test_without_a_gpu_there_is_no_runtime():
    assert module.RUNTIME not in sys.modules
    assert cuda_runtime() is None


def test_runtime_without_a_device_is_none(monkeypatch):
    runtime = SimpleNamespace(cudaGetDeviceCount=lambda: (35, None))
    monkeypatch.setitem(sys.modules, module.RUNTIME, Hashable(runtime))
    monkeypatch.setitem(sys.modules, module.DRIVER, Hashable(SimpleNamespace()))

    assert cuda_runtime() is None


class Hashable:
    """An object that stands for a module."""

    def __init__(self, parts):
        vars(self).update(vars(parts))


@pytest.mark.parametrize(("loads", "answer"), [(OSError, False), (0, False), (2, True)])
def test_gpu_is_there_if_the_driver_shows_one(monkeypatch, loads, answer):
    def load(name):
        if loads is OSError:
            raise OSError(name)
        return Driver(loads)

    monkeypatch.setattr(module.ctypes, "CDLL", load)

    assert has_gpu.__wrapped__() is answer


class Driver:
    """The driver's library, with a number of GPUs."""

    def __init__(self, count):
        self.count = count

    def cuInit(self, flags):
        return 0

    def cuDeviceGetCount(self, place):
        place._obj.value = self.count
        return 0


def test_kind_of_memory_is_that_of_its_address(cuda):
    kinds = [cuda.runtime.location(cuda.allocate(8, kind, 1)) for kind in (1, 2, 3)]

    assert [tuple(kind) for kind in kinds] == [
        (MemoryKind.PINNED, -1),
        (MemoryKind.DEVICE, 1),
        (MemoryKind.MANAGED, 1),
    ]
    assert [cuda.runtime.location(address) for address in (0, 8, -8, 1 << 70)] == [PAGEABLE] * 4


def test_failure_has_the_name_and_the_text_of_its_status(cuda):
    with pytest.raises(ExecutionError, match="NL628: CUDA's cudaMemcpyAsync failed: cudaErrorInvalidResourceHandle: a"):
        cuda.runtime.copy(8, 16, 4, 12345)


def test_shared_array_is_managed_memory_that_is_freed_with_it(cuda):
    array = shared_array((2, 3), np.float32)
    address = array.ctypes.data
    array += 1

    assert cuda.runtime.location(address).kind is MemoryKind.MANAGED
    assert array.tolist() == [[1, 1, 1], [1, 1, 1]]
    del array
    gc.collect()
    assert cuda.runtime.location(address) == PAGEABLE


def test_shared_array_without_a_gpu_is_an_array():
    assert shared_array((2, 0), np.int32).shape == (2, 0)
    assert shared_array((), np.int32).tolist() == 0


@pytest.mark.parametrize("there", [False, True])
def test_bad_address_beside_a_gpu_without_its_package_says_what_to_install(monkeypatch, there):
    monkeypatch.setattr(module, "has_gpu", lambda: True)
    monkeypatch.setattr(module, "cuda_runtime", lambda: object() if there else None)
    finding = module.address_finding(BadAddress("there is nothing", "look again"), "the address of 'x'")

    assert (finding.code, finding.what) == ("NL629", "the address of 'x' is wrong: there is nothing")
    assert finding.fix == ("look again" if there else module.MISSING)
    assert "cuda-bindings" in module.MISSING


def test_package_that_is_not_installed_is_no_runtime(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(module, "has_gpu", lambda: True)
    monkeypatch.setattr(module, "import_module", missing)

    assert module._imported.__wrapped__() is None
