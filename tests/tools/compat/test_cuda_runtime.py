"""CUDA's Python packages on host memory: they compute, and refuse what a device would."""

import ctypes
import sys
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from netloop.compiler.placement import Placement
from netloop.tools.compat import (
    cuda_driver,
    cuda_library,
    cuda_nvrtc,
    cuda_runtime,
    pycuda_compiler,
    pycuda_driver,
    pycuda_gpuarray,
    pycuda_tools,
)
from netloop.tools.compat.cuda_runtime import cudaMemcpyKind, cudaStream_t
from netloop.tools.compat.status import CUresult, cudaError_t
from netloop.values.diagnostics import NetloopError

X = np.arange(6, dtype=np.float32)
TO_DEVICE, TO_HOST, ON_DEVICE = (cudaMemcpyKind(number) for number in (1, 2, 3))
INVALID, BAD_HANDLE = cudaError_t.cudaErrorInvalidValue, cudaError_t.cudaErrorInvalidResourceHandle


def results(returned):
    """What a call returned besides its status, which must be success."""
    status, *made = returned
    assert int(status) == 0
    return made[0] if len(made) == 1 else tuple(made)


@pytest.fixture
def block():
    """24 bytes of device memory."""
    address = results(cuda_runtime.cudaMalloc(X.nbytes))
    yield address
    cuda_runtime.cudaFree(address)


SOURCES = {"array": X, "address": X.ctypes.data, "pointer": ctypes.c_void_p(X.ctypes.data), "bytes": X.tobytes()}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_copies_go_there_and_back(block, source):
    other = results(cuda_runtime.cudaMalloc(X.nbytes))
    y = np.zeros_like(X)
    stream = results(cuda_runtime.cudaStreamCreate())
    results(cuda_runtime.cudaMemcpyAsync(block, source, X.nbytes, TO_DEVICE, stream))
    results(cuda_runtime.cudaMemcpy(other, block, X.nbytes, ON_DEVICE))
    results(cuda_runtime.cudaMemcpy(y.ctypes.data, other, X.nbytes, TO_HOST))

    np.testing.assert_array_equal(y, X)
    results(cuda_runtime.cudaMemset(other + 4, 0, 8))
    results(cuda_runtime.cudaMemcpy(y, other, X.nbytes, TO_HOST))
    np.testing.assert_array_equal(y, [0, 0, 0, 3, 4, 5])
    results(cuda_runtime.cudaFree(other))


@pytest.mark.parametrize(("offset", "size"), [(0, 25), (0, -1), (4, 24), (-4, 8), (24, 1), (1 << 40, 4)])
def test_copy_past_a_block_is_an_error(block, offset, size):
    source = np.zeros(100, np.uint8)

    assert cuda_runtime.cudaMemcpy(block + offset, source, size, TO_DEVICE) == (INVALID,)
    assert cuda_runtime.cudaMemcpy(source, block + offset, size, TO_HOST) == (INVALID,)
    assert cuda_runtime.cudaMemset(block + offset, 1, size) == (INVALID,)
    says = results(cuda_runtime.cudaGetErrorString(INVALID)).decode()
    assert says.startswith(f"cudaErrorInvalidValue: cudaMemset: {size} bytes at 0x")


def test_host_memory_is_no_device_memory():
    assert cuda_runtime.cudaMemcpy(X.ctypes.data, X, 4, TO_DEVICE) == (INVALID,)
    assert cuda_runtime.cudaMemcpy(X, 0, 4, cudaMemcpyKind.cudaMemcpyDefault) == (INVALID,)
    assert cuda_runtime.cudaMemcpy(X, X, -1, cudaMemcpyKind.cudaMemcpyDefault) == (INVALID,)


def test_memory_is_freed_once():
    address = results(cuda_runtime.cudaMalloc(8))

    assert results(cuda_runtime.cudaFree(address)) == ()
    assert cuda_runtime.cudaFree(address) == (INVALID,)
    assert results(cuda_runtime.cudaFree(0)) == ()
    pinned = results(cuda_runtime.cudaMallocHost(8))
    assert cuda_runtime.cudaFree(pinned) == (INVALID,)
    assert results(cuda_runtime.cudaFreeHost(pinned)) == ()


def test_sizes_that_no_memory_has():
    assert cuda_runtime.cudaMalloc(-1) == (INVALID, None)
    assert cuda_runtime.cudaMalloc(1 << 62) == (cudaError_t.cudaErrorMemoryAllocation, None)


def test_streams_and_events():
    stream = results(cuda_runtime.cudaStreamCreateWithFlags(1))
    before, after = (results(cuda_runtime.cudaEventCreate()) for _ in range(2))
    for event in (before, after):
        results(cuda_runtime.cudaEventRecord(event, stream))
        results(cuda_runtime.cudaStreamWaitEvent(stream, event))

    assert isinstance(stream, cudaStream_t)
    assert results(cuda_runtime.cudaEventElapsedTime(before, after)) >= 0
    assert [results(cuda_runtime.cudaStreamSynchronize(handle)) for handle in (0, 1, 2)] == [(), (), ()]
    assert int(stream) > 2
    assert cuda_runtime.cudaEventQuery(1) == (BAD_HANDLE,)
    assert results(cuda_runtime.cudaEventQuery(after)) == ()
    assert results(cuda_runtime.cudaStreamDestroy(stream)) == ()
    assert cuda_runtime.cudaStreamSynchronize(stream) == (BAD_HANDLE,)
    assert cuda_runtime.cudaStreamDestroy(stream) == (BAD_HANDLE,)


def test_there_is_one_device():
    assert results(cuda_runtime.cudaGetDeviceCount()) == 1
    assert results(cuda_runtime.cudaSetDevice(0)) == ()
    assert cuda_runtime.cudaSetDevice(1) == (cudaError_t.cudaErrorInvalidDevice,)
    free, total = results(cuda_runtime.cudaMemGetInfo())
    assert 0 < free <= total
    assert results(cuda_runtime.cudaGetDeviceProperties(0)).major == results(cuda_runtime.cudaDeviceGetAttribute(75, 0))


def test_memory_is_that_of_the_device_that_jax_computes_on(monkeypatch):
    jax.devices()
    gpu = SimpleNamespace(platform="gpu", memory_stats=lambda: {"bytes_limit": 100, "bytes_in_use": 30})
    monkeypatch.setattr(Placement, "default", lambda: Placement.on(gpu))

    assert results(cuda_runtime.cudaMemGetInfo()) == (70, 100)
    assert results(cuda_driver.cuMemGetInfo()) == (70, 100)
    assert pycuda_driver.mem_get_info() == (70, 100)
    monkeypatch.setattr("netloop.tools.compat.device.has_started_jax", lambda: False)
    assert results(cuda_runtime.cudaMemGetInfo())[1] > 100  # of the host, as JAX is not started for it


def test_kind_of_memory_is_that_of_its_address(block):
    pinned = results(cuda_runtime.cudaMallocHost(8))
    kinds = [
        results(cuda_runtime.cudaPointerGetAttributes(place)) for place in (block + 8, pinned, X, block + X.nbytes)
    ]

    assert [int(kind.type) for kind in kinds] == [2, 1, 0, 0]
    assert [kind.device for kind in kinds] == [0, 0, -2, -2]
    assert (kinds[0].devicePointer, kinds[0].hostPointer, kinds[1].hostPointer) == (block + 8, 0, pinned)
    assert results(cuda_driver.cuMemGetAddressRange(block + 8)) == (block, X.nbytes)
    assert cuda_driver.cuMemGetAddressRange(8)[0] == CUresult.CUDA_ERROR_INVALID_VALUE
    cuda_runtime.cudaFreeHost(pinned)


def test_copy_from_no_memory_is_an_error(block):
    for source in (8, 2**47):
        assert cuda_runtime.cudaMemcpy(block, source, 4, TO_DEVICE) == (INVALID,)


def test_driver():
    results(cuda_driver.cuInit(0))
    device = results(cuda_driver.cuDeviceGet(0))
    contexts = [results(cuda_driver.cuCtxCreate(*entry)) for entry in [(0, device), (None, 0, device)]]
    block = results(cuda_driver.cuMemAlloc(X.nbytes))
    y = np.zeros_like(X)
    results(cuda_driver.cuMemcpyHtoD(block, X, X.nbytes))
    results(cuda_driver.cuMemcpyDtoH(y, block, X.nbytes))
    results(cuda_driver.cuMemFree(block))

    np.testing.assert_array_equal(y, X)
    assert contexts[0] == contexts[1]
    assert cuda_driver.cuMemcpyDtoH(y, block, X.nbytes) == (CUresult.CUDA_ERROR_INVALID_VALUE,)
    assert results(cuda_driver.cuGetErrorName(CUresult(1))) == b"CUDA_ERROR_INVALID_VALUE"


def test_pycuda():
    block = pycuda_driver.mem_alloc(X.nbytes)
    y, stream = pycuda_driver.pagelocked_empty(6, np.float32), pycuda_driver.Stream()
    pycuda_driver.memcpy_htod_async(block, X, stream)
    pycuda_driver.memcpy_dtoh_async(y, block, stream)
    stream.synchronize()
    address = int(block)

    np.testing.assert_array_equal(y, X)
    np.testing.assert_array_equal(pycuda_driver.from_device(block, (2, 3), np.float32), X.reshape(2, 3))
    del block
    with pytest.raises(Exception, match="are not within one block of device memory"):
        pycuda_driver.memcpy_dtoh(y, address)


def test_devices_of_pycuda_have_attributes_and_flags():
    device = pycuda_driver.Device(0)
    device.make_context(pycuda_driver.ctx_flags.SCHED_YIELD | pycuda_driver.ctx_flags.MAP_HOST).pop()
    pycuda_driver.Event(pycuda_driver.event_flags.DISABLE_TIMING).record()

    assert device.get_attribute(pycuda_driver.device_attribute.COMPUTE_CAPABILITY_MAJOR) == 9
    assert device.get_attributes()[pycuda_driver.device_attribute.WARP_SIZE] == 32
    assert pycuda_driver.get_version() == (13, 0, 0)
    like = pycuda_driver.pagelocked_empty_like(X, pycuda_driver.host_alloc_flags.DEVICEMAP)
    assert (like.shape, like.dtype) == (X.shape, X.dtype)


def test_pycuda_copies_the_memory_of_arrays_as_it_is():
    columns = np.asfortranarray(X.reshape(2, 3))
    block = pycuda_driver.to_device(columns)

    np.testing.assert_array_equal(pycuda_driver.from_device(block, (2, 3), np.float32, "F"), columns)
    np.testing.assert_array_equal(pycuda_driver.from_device(block, 6, np.float32), columns.T.reshape(-1))
    np.testing.assert_array_equal(pycuda_gpuarray.to_gpu(columns).get(), columns)
    with pytest.raises(ValueError, match="ndarray is not contiguous"):
        pycuda_driver.memcpy_htod(block, X[::2])


@pytest.mark.parametrize("module", [cuda_runtime, cuda_driver, cuda_nvrtc, pycuda_driver])
def test_what_is_not_there_says_why(module):
    with pytest.raises(AttributeError, match=r"netloop's stand-in for .* has no launch: .* runs no kernels"):
        module.launch  # noqa: B018


@pytest.mark.parametrize(
    "compiled",
    [
        pycuda_compiler.SourceModule,
        pycuda_compiler.DynamicSourceModule,
        pycuda_compiler.compile,
        cuda_nvrtc.nvrtcCreateProgram,
    ],
)
def test_source_of_a_kernel_is_refused(compiled):
    with pytest.raises(NetloopError, match=r"NL690: the source of a CUDA kernel cannot be compiled.*\n.*\n.*fix: "):
        compiled("__global__ void k() {}", options=["-O3"])


def test_tools_of_pycuda():
    context = pycuda_tools.make_default_context()
    assert pycuda_tools.get_default_device().name() == pycuda_driver.Device(0).name()
    assert pycuda_tools.make_default_context(lambda device: context) is context
    block = pycuda_tools.DeviceMemoryPool().allocate(X.nbytes)
    y = pycuda_tools.PageLockedMemoryPool().allocate(6, np.float32)
    pycuda_driver.memcpy_htod(block, X)
    pycuda_driver.memcpy_dtoh(y, block)

    np.testing.assert_array_equal(y, X)
    assert pycuda_tools.mark_cuda_test(test_pycuda) is test_pycuda
    pycuda_tools.clear_context_caches()


def test_library_writes_results_where_pointers_point():
    library = cuda_library.library_loader(has_gpu=False)("libcudart.so")
    pointer, stream, y = ctypes.c_void_p(), ctypes.c_void_p(), np.zeros_like(X)
    size = ctypes.c_size_t(X.nbytes)

    assert library.cudaMalloc(ctypes.byref(pointer), size) == 0
    assert library.cudaStreamCreate(ctypes.byref(stream)) == 0
    source, target = ctypes.c_void_p(X.ctypes.data), ctypes.c_void_p(y.ctypes.data)
    assert library.cudaMemcpyAsync(pointer, source, size, ctypes.c_int(1), stream) == 0
    assert library.cudaMemcpy(target, pointer, size, ctypes.c_int(2)) == 0
    np.testing.assert_array_equal(y, X)
    assert library.cudaMemcpy(target, pointer, ctypes.c_size_t(25), ctypes.c_int(2)) == 1
    assert library.cudaFree(pointer) == 0
    library.cudaGetErrorString.restype = ctypes.c_char_p
    assert library.cudaGetErrorString(1).startswith(b"cudaErrorInvalidValue: cudaMemcpy: ")
    assert library.cudaGetErrorName(ctypes.c_int(0)) == b"cudaSuccess"


def test_rows_are_copied(block):
    rows, back = np.arange(12, dtype=np.uint8).reshape(3, 4), np.zeros((3, 2), np.uint8)
    to, back_to = cudaMemcpyKind.cudaMemcpyHostToDevice, cudaMemcpyKind.cudaMemcpyDeviceToHost

    assert results(cuda_runtime.cudaMemcpy2D(block, 2, rows, 4, 2, 3, to)) == ()
    assert results(cuda_runtime.cudaMemcpy2DAsync(back, 2, block, 2, 2, 3, back_to, 0)) == ()
    np.testing.assert_array_equal(back, rows[:, :2])
    assert cuda_runtime.cudaMemcpy2D(block, 1, rows, 4, 2, 3, to) == (cudaError_t.cudaErrorInvalidValue,)


def test_types_can_be_mentioned():
    def captured(graph: cuda_runtime.cudaGraphNode_t, mode: cuda_driver.CUgraphExec | None) -> None: ...

    assert captured.__annotations__["graph"].__name__ == "cudaGraphNode_t"
    with pytest.raises(AttributeError, match="no cudaGraphMemAttribute of which cudaGraphMemAttrReserved is one"):
        cuda_runtime.cudaGraphMemAttribute.cudaGraphMemAttrReserved()
    with pytest.raises(TypeError, match="has no CUgraphExec of which there are objects"):
        cuda_driver.CUgraphExec()


def test_attributes_of_the_driver_are_those_of_the_runtime():
    attribute = cuda_driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR

    assert results(cuda_driver.cuDeviceGetAttribute(attribute, cuda_driver.CUdevice(0))) == 9


def test_library_of_plugins_initializes_none():
    library = cuda_library.library_loader(has_gpu=False)("/usr/lib/libnvinfer_plugin.so.8")

    assert library.initLibNvInferPlugins(None, b"")
    with pytest.raises(AttributeError, match="has no createInferBuilder"):
        library.createInferBuilder()
    with pytest.raises(OSError, match="libnvinfer_of_mine"):
        cuda_library.library_loader(has_gpu=False)("libnvinfer_of_mine.so")


def test_loaders_that_are_installed_again_and_again_do_not_call_each_other(monkeypatch):
    for _ in range(sys.getrecursionlimit()):
        monkeypatch.setattr(ctypes, "CDLL", cuda_library.library_loader(has_gpu=False))

    with pytest.raises(OSError, match="libnvinfer_of_mine"):
        ctypes.CDLL("libnvinfer_of_mine.so")


def test_loader_is_a_class_of_libraries(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", cuda_library.library_loader(has_gpu=False))

    class OfUser(ctypes.CDLL):
        def __init__(self, name):
            super().__init__(name)
            self.user = "a user"

    of_user, of_tensorrt = OfUser(None), ctypes.CDLL(Path("libnvinfer_plugin.so"))
    libraries = [ctypes.CDLL(None), ctypes.pythonapi, of_user, of_tensorrt, ctypes.CDLL("libcudart.so")]
    assert all(isinstance(library, ctypes.CDLL) for library in libraries)
    assert [isinstance(library, OfUser) for library in libraries] == [False, False, True, False, False]
    assert not isinstance("libc", ctypes.CDLL | None)
    assert of_user.user == "a user"
    assert of_user.abs(-3) == 3
    assert of_tensorrt.initLibNvInferPlugins(None, b"")


def test_arrays_of_pycuda():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    array = pycuda_gpuarray.to_gpu(x)
    zeros, other = pycuda_gpuarray.zeros_like(array), pycuda_gpuarray.empty_like(array)
    other.set(2 * x)

    assert [array.shape, array.nbytes, len(array), int(array.gpudata)] == [(2, 3), 24, 2, array.ptr]
    np.testing.assert_array_equal([array.get(), zeros.get(), other.get(np.empty_like(x))], [x, 0 * x, 2 * x])
    stream, back = pycuda_driver.Stream(), np.empty_like(x)
    other.set_async(3 * x, stream)
    assert other.get_async(stream, back) is back
    np.testing.assert_array_equal(back, 3 * x)
    np.testing.assert_array_equal(other.get_async(stream), 3 * x)
    with pytest.raises(ValueError, match=r"ary is float64\[3\], and the array float32\[2, 3\]"):
        array.set(np.zeros(3))
