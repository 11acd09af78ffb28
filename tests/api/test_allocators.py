"""Allocators of device memory are recorded, and never called."""

import pytest

import netloop as trt
from tests.support import networks
from tests.support.log import Log


def test_allocator_of_a_builder_is_never_asked():
    class Allocator(trt.IGpuAsyncAllocator):
        def allocate_async(self, size, alignment, flags, stream):
            raise AssertionError

    builder = trt.Builder(log := Log())
    builder.gpu_allocator = allocator = Allocator()

    assert builder.build_engine_with_config(networks.swap(), builder.create_builder_config()) is not None
    assert builder.gpu_allocator is allocator
    assert log.infos() == ["no effect in netloop, because XLA decides: gpu_allocator"]
    with pytest.raises(TypeError, match="gpu_allocator must be None or IGpuAllocator"):
        builder.gpu_allocator = 3


def test_allocator_has_no_memory_by_itself():
    allocator = trt.IGpuAllocator()

    assert allocator.allocate_async(8, 0, 0, 0) == allocator.reallocate(1, 0, 8) == 0
    assert allocator.deallocate_async(1, 0) is False
    assert allocator.api_language is trt.APILanguage.PYTHON
    assert allocator.interface_info.kind == "IGpuAllocator"
