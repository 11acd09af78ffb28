"""Memory that others allocated becomes an array of JAX without a copy."""

import jax
import numpy as np
import pytest

from netloop.api.device_arrays import CudaDevice, DeviceBlock
from netloop.compiler.jax_settings import pinned_settings
from netloop.values.enums import DataType
from netloop.values.types import numpy_type

ON_CPU, ALIGNMENT = 1, 64


def aligned(array):
    """The same array at an address that XLA takes on the CPU."""
    memory = np.zeros(array.nbytes + ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % ALIGNMENT
    result = memory[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    result[...] = array
    return result


def block(array, order=lambda stream: None, device_type=ON_CPU):
    return DeviceBlock(array.ctypes.data, array.dtype, array.shape, 0, order, device_type)


@pytest.mark.parametrize(
    "name",
    [DataType.FLOAT, DataType.HALF, DataType.BF16, DataType.DOUBLE, DataType.INT64, DataType.UINT8, DataType.BOOL],
)
@pytest.mark.parametrize("shape", [(), (2, 3), (1, 2, 1, 2, 1, 2, 1, 2)])
def test_array_has_the_memory(name, shape):
    source = aligned(np.arange(int(np.prod(shape))).reshape(shape).astype(numpy_type(name)))
    with pinned_settings():
        array = block(source).array()

    assert (array.dtype, array.shape) == (source.dtype, shape)
    assert array.unsafe_buffer_pointer() == source.ctypes.data
    np.testing.assert_array_equal(np.asarray(array), source)


@pytest.mark.parametrize("name", [DataType.FP8, DataType.E5M2, DataType.E8M0])
def test_types_of_a_byte_that_dlpack_has_not_arrive_too(name):
    source = aligned(np.array([1, 2, 4]).astype(numpy_type(name)))

    array = block(source).array()
    assert array.dtype == source.dtype
    np.testing.assert_array_equal(np.asarray(array), source)


def test_stream_that_jax_asks_with_waits_for_the_memory():
    asked = []
    place = block(aligned(np.zeros(3, np.float32)), asked.append, device_type=2)
    place.__dlpack__(stream=12345)

    assert place.__dlpack_device__() == (2, 0)
    assert asked == [12345]


def test_without_a_stream_the_host_waits():
    asked = []
    block(aligned(np.zeros(3, np.float32)), asked.append).array()

    assert asked == [None]


def test_host_waits_for_an_array_where_xla_has_no_streams(monkeypatch):
    device = CudaDevice(jax.devices("cpu")[0])

    class Array:
        def __dlpack__(self, stream):
            raise jax.errors.JaxRuntimeError("UNIMPLEMENTED")

        def block_until_ready(self):
            return self

    array = Array()
    assert device.wait(array, 5) is array


def test_cpu_is_no_cuda_device():
    assert CudaDevice.of(jax.devices("cpu")[0]) is None
