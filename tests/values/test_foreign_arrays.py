"""Arrays of other libraries, whose memory is read by their protocols."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from netloop.values import foreign_arrays
from netloop.values.foreign_arrays import UnreadableArrayError, array_of, is_borrowed
from tests.support.foreign_arrays import CUDA, METAL, CudaArray, CudaTensor, HostTensor


@pytest.fixture
def gpu(monkeypatch):
    """As if JAX had a GPU, whose memory is that of the host."""
    monkeypatch.setattr(foreign_arrays, "_has_platform", lambda name: name == "cuda")


def aligned(dtype=np.float32):
    """The numbers from 0 to 15, at an address that JAX takes without a copy."""
    memory = np.zeros(256, np.uint8)
    start = -memory.ctypes.data % 64
    array = memory[start : start + 16 * np.dtype(dtype).itemsize].view(dtype)
    array[:] = np.arange(16)
    return array


def read_only():
    array = aligned()
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("array", [np.ones(3), jax.device_put(np.ones(3, np.float32))], ids=["numpy", "jax"])
def test_array_of_numpy_or_jax_is_itself(array):
    assert array_of(array) is array
    assert not is_borrowed(array, array)


@pytest.mark.parametrize(
    "value", [[1.0, 2.0], 1.5, np.float32(2), memoryview(b"ab")], ids=lambda value: repr(value)[:9]
)
def test_other_values_are_what_numpy_makes_of_them(value):
    np.testing.assert_array_equal(array_of(value), np.asarray(value))


@pytest.mark.parametrize(
    "array",
    [
        aligned(),
        aligned(np.int64),
        aligned(np.uint8) > 3,
        aligned()[::2],
        aligned()[::-1],
        aligned().reshape(4, 4).T,
        np.full((), 3, np.float32),
        read_only(),
        np.zeros((0, 3), np.float16),
    ],
    ids=["float32", "int64", "bool", "gaps", "backwards", "transposed", "number", "read-only", "empty"],
)
def test_tensor_on_the_host_is_an_array_of_numpy_in_its_memory(array):
    result = array_of(HostTensor(array))

    assert (type(result), result.dtype, result.shape) == (np.ndarray, array.dtype, array.shape)
    np.testing.assert_array_equal(result, array)
    assert np.shares_memory(result, array) or not array.size


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float8_e4m3fn], ids=["bfloat16", "float8"])
def test_element_types_that_numpy_lacks_come_by_jax(dtype):
    array = jnp.arange(16, dtype=np.float32).astype(dtype)
    result = array_of(HostTensor(array))

    assert (type(result), result.dtype) == (np.ndarray, dtype)
    np.testing.assert_array_equal(result.astype(np.float32), np.arange(16))


def test_tensor_on_a_device_of_jax_is_an_array_of_jax_in_its_memory(gpu):
    array, tensor = aligned(), CudaTensor(aligned())
    tensor.array = array
    result = array_of(tensor)

    assert isinstance(result, jax.Array)
    assert result.unsafe_buffer_pointer() == array.ctypes.data
    assert "array" not in tensor.asked
    assert is_borrowed(result, tensor)


def test_numbers_of_64_bits_stay_so_without_that_setting_of_jax(gpu):
    assert not jax.config.jax_enable_x64
    assert array_of(CudaTensor(aligned(np.int64))).dtype == np.int64
    assert array_of(CudaArray(aligned(np.int64))).dtype == np.int64


def test_tensor_with_gaps_is_copied_without_them(gpu):
    tensor, array = CudaTensor(aligned()[::2]), CudaArray(aligned()[::2])

    for value in (tensor, array):
        np.testing.assert_array_equal(array_of(value), np.arange(0, 16, 2))
    assert "clone" in tensor.asked


def test_tensor_at_an_address_that_xla_refuses_is_copied(gpu, monkeypatch):
    addresses = iter([8, 16, 8, 16])
    monkeypatch.setattr(type(jnp.ones(1)), "unsafe_buffer_pointer", lambda array: next(addresses))
    tensor, array = CudaTensor(aligned()), CudaArray(aligned())

    for value in (tensor, array):
        np.testing.assert_array_equal(array_of(value), np.arange(16))
    assert "clone" in tensor.asked
    assert next(addresses, None) is None


def test_array_with_the_interface_of_cuda_is_one_of_jax(gpu):
    array = CudaArray(aligned())

    assert isinstance(array_of(array), jax.Array)
    np.testing.assert_array_equal(array_of(array), np.arange(16))


class Both(CudaArray, CudaTensor):
    """An array with both protocols, of which one may fail."""

    def __init__(self, array, fails=False):
        CudaTensor.__init__(self, array)
        self.fails = fails

    def __dlpack__(self, **options):
        if self.fails:
            raise BufferError("no such capsule")
        return super().__dlpack__(**options)

    clone = None


def test_dlpack_comes_first_of_both_protocols(gpu):
    array = Both(aligned())
    np.testing.assert_array_equal(array_of(array), np.arange(16))

    assert array.asked == ["device", "device", "dlpack"]


def test_interface_of_cuda_is_asked_if_dlpack_fails(gpu):
    array = Both(aligned(), fails=True)
    np.testing.assert_array_equal(array_of(array), np.arange(16))

    assert array.asked[-1] == "jax"


def test_library_may_copy_to_the_host_where_jax_has_no_such_device():
    class Copied(HostTensor):
        def __array__(self, *options, **named):
            return self.array

    np.testing.assert_array_equal(array_of(Copied(aligned(), CUDA)), np.arange(16))


class Failing(HostTensor):
    """A tensor whose library raises errors of its own."""

    class OwnError(Exception):
        pass

    def __dlpack_device__(self):
        raise Failing.OwnError("no device today")

    def __array__(self, *options, **named):
        raise Failing.OwnError("nothing to see")

    @property
    def requires_grad(self):
        raise Failing.OwnError("not that either")


def requiring_gradients():
    tensor = CudaTensor(aligned(), visible=False)
    tensor.requires_grad = True
    return tensor


INSTALL = ", or install JAX for its device: pip install 'netloop[cuda13]'"


@pytest.mark.parametrize(
    ("value", "what", "why", "fix"),
    [
        (CudaTensor(aligned()), "a CudaTensor on cuda:0", "JAX has no such device here", f"pass value.cpu(){INSTALL}"),
        (CudaArray(aligned()), "a CudaArray on cuda:0", "JAX has no such device here", f"pass value.get(){INSTALL}"),
        (requiring_gradients(), "a CudaTensor on cuda:0", "can't convert cuda:0", "pass value.detach()"),
        (
            HostTensor(aligned(), METAL),
            "a HostTensor on a device of the type 8 of DLPack",
            "numpy takes a HostTensor for an object",
            "pass a numpy array of its numbers",
        ),
        (
            Failing(aligned()),
            "a Failing on a device that it does not name",
            "nothing to see",
            "pass a numpy array of its numbers",
        ),
    ],
    ids=["torch", "cupy", "gradients", "metal", "failing"],
)
def test_array_that_cannot_be_read_is_told_with_its_device_the_reason_and_a_fix(value, what, why, fix):
    with pytest.raises(UnreadableArrayError) as caught:
        array_of(value)

    assert caught.value.what == what
    assert caught.value.why.startswith(why)
    assert caught.value.fix.startswith(fix)


def test_elements_of_a_list_that_raise_errors_of_their_library_make_no_array():
    with pytest.raises(ValueError, match="nothing to see"):
        array_of([Failing(aligned())])
