"""Addresses, streams and lifetimes on a GPU: one line for each fact, whatever became of those before.

    python -m tests.gpu.check_addresses

It needs jax with its CUDA plugin, cuda-bindings and numpy, and torch for one fact. Without a GPU it tries itself on the
fake runtime of the tests, where nothing of it is true of a GPU.
"""

import ctypes
import faulthandler
import importlib
import importlib.util
import io
import random
import runpy
import sys
import time
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import netloop as trt
from netloop.api.device_arrays import CudaDevice
from netloop.process.cuda_runtime import MemoryKind, cuda_runtime, has_gpu
from tests.support import fake_cuda, networks
from tests.support.builds import length_by_value
from tests.support.fake_torch import fake_torch
from tests.support.log import Log
from tests.support.memory import Pages

FLOAT = np.float32
X = np.arange(1 << 16, dtype=FLOAT).reshape(256, 256) % 1000
SAMPLE = Path(__file__).parents[2] / "samples" / "tensorrt_pytorch.py"
PAUSE = 0.3
"""The seconds for which a stream is kept busy."""


class RealGpu:
    """A GPU, by NVIDIA's runtime."""

    def __init__(self) -> None:
        self.runtime = importlib.import_module("cuda.bindings.runtime")
        self._default = self.runtime.cudaMemcpyKind.cudaMemcpyDefault

    def _call(self, name: str, *arguments: Any) -> Any:
        status, *results = getattr(self.runtime, name)(*arguments)
        assert int(status) == 0, (name, status)
        return results[0] if results else None

    def allocate(self, size: int, kind: MemoryKind = MemoryKind.DEVICE) -> int:
        if kind is MemoryKind.PINNED:
            return int(self._call("cudaHostAlloc", size, 0))
        return int(
            self._call(*(("cudaMallocManaged", size, 1) if kind is MemoryKind.MANAGED else ("cudaMalloc", size)))
        )

    def put(self, array: Any, kind: MemoryKind = MemoryKind.DEVICE, offset: int = 0) -> int:
        array = np.ascontiguousarray(array)
        address = self.allocate(array.nbytes + offset, kind) + offset
        self._call("cudaMemcpy", address, array.ctypes.data, array.nbytes, self._default)
        return address

    def get(self, address: int, dtype: Any, shape: Any) -> Any:
        array = np.empty(shape, dtype)
        self._call("cudaMemcpy", array.ctypes.data, address, array.nbytes, self._default)
        return array

    def free(self, address: int) -> None:
        self._call("cudaFree", address)

    def stream(self) -> int:
        return int(self._call("cudaStreamCreateWithFlags", 1))

    def advance(self, stream: int) -> None:
        self._call("cudaStreamSynchronize", stream)

    def pause(self, stream: int) -> None:
        """Keep the stream busy: the C library's ``usleep`` is its work, which needs no interpreter."""
        sleep = ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p).value
        self._call("cudaLaunchHostFunc", stream, self.runtime.cudaHostFn_t(sleep), int(PAUSE * 1e6))

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        self._call("cudaMemcpyAsync", target, source, size, self._default, stream)

    def event(self) -> int:
        return int(self._call("cudaEventCreateWithFlags", 2))

    @contextmanager
    def in_another_context(self) -> Generator[None]:
        driver = importlib.import_module("cuda.bindings.driver")
        _, device = driver.cuDeviceGet(0)
        try:
            created = driver.cuCtxCreate(None, 0, device)
        except TypeError:  # CUDA 12
            created = driver.cuCtxCreate(0, device)
        assert int(created[0]) == 0, created
        try:
            yield
        finally:
            driver.cuCtxPopCurrent()

    def is_done(self, event: int) -> bool:
        return int(self.runtime.cudaEventQuery(event)[0]) == 0


class DryGpu(fake_cuda.FakeCuda):
    """The fake runtime, with the same methods."""

    def put(self, array: Any, kind: Any = MemoryKind.DEVICE, offset: int = 0) -> int:
        return super().put(array, kind.value, 0, offset)

    def allocate(self, size: int, kind: Any = MemoryKind.DEVICE, device: int = 0) -> int:
        return super().allocate(size, kind.value if isinstance(kind, MemoryKind) else kind, device)

    def pause(self, stream: int) -> None:
        self.enqueue(stream, lambda: None)

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        self.cudaMemcpyAsync(target, source, size, fake_cuda.Kind.cudaMemcpyDefault, stream)

    def event(self) -> int:
        return self.cudaEventCreateWithFlags(2)[1]

    @contextmanager
    def in_another_context(self) -> Generator[None]:
        self.context += 1
        yield
        self.context -= 1

    def is_done(self, event: int) -> bool:
        return self.cudaEventQuery(event)[0] == 0


Fact = Callable[[Any], Any]
FACTS: list[Fact] = []


def fact(function: Fact) -> Fact:
    """Add a function to the facts; its docstring is the fact, and what it returns is printed after it."""
    FACTS.append(function)
    return function


class Errors(trt.IErrorRecorder):
    """The texts of the errors of a context."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def report_error(self, arg0: Any, arg1: str) -> bool:
        self.texts.append(arg1)
        return False


@cache
def engine_of(shape: Any) -> Any:
    """An engine of ``y = x + x``, compiled once for all facts."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, shape)
    networks.mark(network, y=networks.combine(network, x, x))
    return trt.compile(network)


def doubling(shape: Any = X.shape) -> Any:
    """A context of it, whose error recorder keeps texts."""
    context = engine_of(shape).create_execution_context()
    context.error_recorder = Errors()
    return context


def bind(context: Any, **addresses: int) -> Any:
    for name, address in addresses.items():
        assert context.set_tensor_address(name, address)
    return context


def equal(result: Any, expected: Any) -> None:
    np.testing.assert_array_equal(result, expected)


def is_double(gpu: Any, y: int) -> None:
    equal(gpu.get(y, FLOAT, X.shape), 2 * X)


# ---------------------------------------------------------------------------- what is at an address


@fact
def kinds(gpu: Any) -> Any:
    """memory of the device, pinned, managed and pageable memory are distinguished"""
    cuda = cuda_runtime()
    assert cuda is not None
    there = [
        cuda.location(gpu.put(X, kind)).kind for kind in (MemoryKind.DEVICE, MemoryKind.PINNED, MemoryKind.MANAGED)
    ]
    assert there == [MemoryKind.DEVICE, MemoryKind.PINNED, MemoryKind.MANAGED], there
    assert cuda.location(X.ctypes.data).kind is MemoryKind.PAGEABLE
    odd = [cuda.location(address).kind for address in (0, 8, 1 << 40, 2**47 - 8, 2**63, 2**64 - 8)]
    assert odd == [MemoryKind.PAGEABLE] * 6, odd


@fact
def streams_of_xla(gpu: Any) -> Any:
    """XLA has streams for memory that others write, and streams wait for its arrays"""
    if isinstance(gpu, DryGpu):
        return "not tried: there is no GPU"
    device, array = jax.devices()[0], jax.device_put(X)
    array.__dlpack__(stream=gpu.stream())
    return f"{len({device.get_stream_for_external_ready_events() for _ in range(8)})} streams"


@fact
def in_place(gpu: Any) -> Any:
    """an input in aligned memory of the device is read where it is"""
    views: list[tuple[int, int]] = []
    device = getattr(gpu, "gpu", None) or CudaDevice
    before = device.view

    def view(*arguments: Any) -> Any:
        result = before(*arguments)
        views.append((arguments[-1].address, result.unsafe_buffer_pointer()))
        return result

    device.view = view
    try:
        for offset in (0, 64):
            x, y = gpu.put(X, offset=offset), gpu.allocate(X.nbytes)
            assert doubling().execute_v2([x, y])
            is_double(gpu, y)
            assert views.pop() == (x, x)
    finally:
        device.view = before


@fact
def smallest_alignment(gpu: Any) -> Any:
    """an input at any multiple of its element size gives the right numbers"""
    context = doubling()
    for offset in (4, 8, 12, 16, 20, 32, 128):
        x, y = gpu.put(X, offset=offset), gpu.allocate(X.nbytes + offset) + offset
        assert context.execute_v2([x, y]), offset
        is_double(gpu, y)


@fact
def kinds_of_memory(gpu: Any) -> Any:
    """inputs and outputs may be in pageable, pinned, managed and device memory, in any mixture"""
    context = doubling()
    for source in MemoryKind:
        for target in MemoryKind:
            array = np.zeros_like(X)
            x = X.ctypes.data if source is MemoryKind.PAGEABLE else gpu.put(X, source)
            y = array.ctypes.data if target is MemoryKind.PAGEABLE else gpu.allocate(X.nbytes, target)
            assert context.execute_v2([x, y]), (source, target, context.error_recorder.texts)
            equal(array if target is MemoryKind.PAGEABLE else gpu.get(y, FLOAT, X.shape), 2 * X)


@fact
def element_types(gpu: Any) -> Any:
    """elements of 1, 2, 4 and 8 bytes come and go, packed ones too"""
    from netloop.values.types import numpy_type

    for dtype in (trt.bool, trt.uint8, trt.float16, trt.bfloat16, trt.int32, trt.int64, trt.fp8, trt.int4):
        builder = trt.Builder(Log())
        network = builder.create_network()
        networks.mark(network, y=network.add_shuffle(network.add_input("x", dtype, (64,))).get_output(0))
        engine = builder.build_engine_with_config(network, builder.create_builder_config())
        values = np.resize([0, 1, 1, 0, 1], 64).astype(numpy_type(dtype))
        x, y = gpu.put(values.view(np.uint8)), gpu.allocate(values.nbytes)
        assert engine.create_execution_context().execute_v2([x, y]), dtype
        equal(gpu.get(y, np.uint8, (values.nbytes,)), values.view(np.uint8))


# ---------------------------------------------------------------------------- order


@fact
def after_earlier_work(gpu: Any) -> Any:
    """a run comes after the work that is on the stream, and the host does not wait for it"""
    context, stream = doubling(), gpu.stream()
    x, y, full = gpu.put(0 * X), gpu.allocate(X.nbytes), gpu.put(X, MemoryKind.PINNED)
    bind(context, x=x, y=y)
    assert context.execute_async_v3(stream)  # compiled, if it was not
    gpu.advance(stream)
    gpu.pause(stream)
    gpu.copy(x, full, X.nbytes, stream)
    begin = time.perf_counter()
    assert context.execute_async_v3(stream)
    host = time.perf_counter() - begin
    gpu.advance(stream)
    is_double(gpu, y)
    assert host < PAUSE / 2, f"the host waited for {host:.3f} s"
    return f"the call took {host * 1e6:.0f} us while the stream was busy for {PAUSE} s"


@fact
def before_later_work(gpu: Any) -> Any:
    """what is enqueued next finds the outputs, and may write to the inputs"""
    context, stream = doubling(), gpu.stream()
    x, y, copy, other = gpu.put(X), gpu.allocate(X.nbytes), gpu.allocate(X.nbytes), gpu.put(7 + X, MemoryKind.PINNED)
    bind(context, x=x, y=y)
    full = gpu.put(X)
    for _ in range(3):
        gpu.copy(x, full, X.nbytes, stream)
        gpu.pause(stream)
        assert context.execute_async_v3(stream)
        gpu.copy(x, other, X.nbytes, stream)
        gpu.copy(copy, y, X.nbytes, stream)
    gpu.advance(stream)
    is_double(gpu, copy)


@fact
def default_stream(gpu: Any) -> Any:
    """the default stream is in order too, by both of its handles"""
    context = doubling()
    x, y, full = gpu.put(0 * X), gpu.allocate(X.nbytes), gpu.put(X, MemoryKind.PINNED)
    bind(context, x=x, y=y)
    for stream in (0, 1):
        gpu.copy(x, full, X.nbytes, 1)
        assert context.execute_async_v3(stream)
        gpu.advance(1)
        is_double(gpu, y)


@fact
def host_memory_in_order(gpu: Any) -> Any:
    """pageable memory of the host is read and written in the order of the stream"""
    context, stream, x, y = doubling(), gpu.stream(), 0 * X, 0 * X
    full = gpu.put(X)
    gpu.pause(stream)
    gpu.copy(x.ctypes.data, full, X.nbytes, stream)
    bind(context, x=x.ctypes.data, y=y.ctypes.data)
    assert context.execute_async_v3(stream)
    equal(y, 2 * X)


@fact
def consumed_event(gpu: Any) -> Any:
    """the event of consumed inputs is recorded"""
    context, stream, event = doubling(), gpu.stream(), gpu.event()
    bind(context, x=gpu.put(X), y=gpu.allocate(X.nbytes))
    assert context.set_input_consumed_event(event)
    gpu.pause(stream)
    assert context.execute_async_v3(stream)
    early = gpu.is_done(event)
    gpu.advance(stream)
    assert not early
    assert gpu.is_done(event)


@fact
def threads(gpu: Any) -> Any:
    """threads run contexts of one engine on streams of their own"""
    import threading

    context, wrong = doubling(), list[Any]()
    engine = context.engine

    def work(number: int) -> None:
        own, stream = engine.create_execution_context(), gpu.stream()
        x, y = gpu.put(X + number), gpu.allocate(X.nbytes)
        bind(own, x=x, y=y)
        for _ in range(20):
            if not own.execute_async_v3(stream):
                wrong.append(number)
        gpu.advance(stream)
        if not np.array_equal(gpu.get(y, FLOAT, X.shape), 2 * (X + number)):
            wrong.append(number)

    if isinstance(gpu, DryGpu):  # its streams are not for several threads
        work(0)
    else:
        workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert wrong == [], wrong


# ---------------------------------------------------------------------------- lifetimes


@fact
def lifetimes(gpu: Any) -> Any:
    """outputs stay until the stream has copied them, though their memory is wanted and their context is gone"""
    context, stream = doubling(), gpu.stream()
    inputs, outputs = [gpu.put(X + number) for number in range(30)], [gpu.allocate(X.nbytes) for _ in range(30)]
    assert bind(context, x=inputs[0], y=outputs[0]).execute_async_v3(stream)
    gpu.pause(stream)
    for x, y in zip(inputs, outputs, strict=True):
        assert bind(context, x=x, y=y).execute_async_v3(stream)
        jax.block_until_ready(jax.device_put(np.full_like(X, -1)))  # takes memory that was given back
    del context
    gpu.advance(stream)
    for number, y in enumerate(outputs):
        equal(gpu.get(y, FLOAT, X.shape), 2 * (X + number))


@fact
def nothing_is_kept(gpu: Any) -> Any:
    """memory of old runs is given back"""
    context, stream = doubling(), gpu.stream()
    bind(context, x=gpu.put(X), y=gpu.allocate(X.nbytes))
    sizes: list[int] = []
    for number in range(600):
        assert context.execute_async_v3(stream)
        if number % 200 == 199:
            gpu.advance(stream)
            sizes.append((jax.devices()[0].memory_stats() or {}).get("bytes_in_use", 0))
    assert sizes[-1] <= sizes[0] + 2 * X.nbytes, sizes
    return f"bytes in use after 200, 400 and 600 runs: {sizes}"


# ---------------------------------------------------------------------------- all that takes an address


@fact
def sample(gpu: Any) -> Any:
    """the sample with PyTorch's tensors, an output allocator and dynamic shapes prints what it promises"""
    stands_for = isinstance(gpu, DryGpu)
    if not stands_for and importlib.util.find_spec("torch") is None:
        return "not tried: there is no torch"
    modules = {"tensorrt": importlib.import_module("netloop.tensorrt")}
    output, patch = io.StringIO(), pytest.MonkeyPatch()
    with redirect_stdout(output), patch.context() as patched:
        for name, module in {**modules, **({"torch": fake_torch(gpu)} if stands_for else {})}.items():
            patched.setitem(sys.modules, name, module)
        promised = runpy.run_path(str(SAMPLE), run_name="__main__")["__doc__"]
    lines = [line.strip() for line in promised.splitlines()]
    assert output.getvalue().strip().splitlines() == [line for line in lines if line.startswith("(")], output.getvalue()
    return "with a few names that stand for PyTorch" if stands_for else "with PyTorch"


@fact
def shape_values(gpu: Any) -> Any:
    """a value that decides a shape is read from memory of the device"""
    builder = trt.Builder(Log())
    engine = builder.build_engine_with_config(length_by_value(builder), builder.create_builder_config())
    context, stream = engine.create_execution_context(), gpu.stream()
    powers = gpu.allocate(20)
    bind(context, n=gpu.put(np.int32(5)), powers=powers)
    assert context.infer_shapes() == []
    assert context.get_tensor_shape("powers") == (5,)
    assert context.execute_async_v3(stream)
    gpu.advance(stream)
    equal(gpu.get(powers, np.int32, (5,)), [1, 2, 4, 8, 16])


@fact
def debug_tensors(gpu: Any) -> Any:
    """a debug listener gets an address from which its stream copies the value"""

    class Listener(trt.IDebugListener):
        def process_debug_tensor(self, addr: Any, location: Any, type: Any, shape: Any, name: str, stream: int) -> bool:
            self.location, self.value = location, np.empty(tuple(shape), FLOAT)
            gpu.copy(self.value.ctypes.data, addr, self.value.nbytes, stream)
            gpu.advance(stream)
            return True

    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, X.shape)
    doubled = networks.combine(network, x, x)
    networks.mark(network, y=networks.combine(network, doubled, x))
    network.mark_debug(doubled)
    context, stream, listener = trt.compile(network).create_execution_context(), gpu.stream(), Listener()
    context.set_debug_listener(listener)
    context.set_all_tensors_debug_state(True)
    y = gpu.allocate(X.nbytes)
    bind(context, x=gpu.put(X), y=y)
    assert context.execute_async_v3(stream)
    gpu.advance(stream)
    equal(listener.value, 2 * X)
    equal(gpu.get(y, FLOAT, X.shape), 3 * X)
    return listener.location.name


@fact
def weights(gpu: Any) -> Any:
    """weights at an address of the device replace those of an engine"""
    network = trt.INetworkDefinition()
    x, w = network.add_input("x", trt.float32, X.shape), network.add_constant(X.shape, X)
    networks.mark(network, y=networks.combine(network, x, w.get_output(0)))
    engine = trt.compile(network)
    refitter = trt.Refitter(engine, Log())
    (name,) = refitter.get_all_weights()
    for location in (trt.TensorLocation.HOST, trt.TensorLocation.DEVICE):
        place = gpu.put(5 * X)
        assert refitter.set_named_weights(name, trt.Weights(trt.float32, place, X.size), location)
        assert refitter.refit_cuda_engine_async(gpu.stream())
        equal(engine({"x": X})["y"], 6 * X)


@fact
def plugins(gpu: Any) -> Any:
    """a plugin's addresses are valid for the host and for the device"""
    from tests.support.plugin_examples import Plugin

    kinds: list[Any] = []

    class Doubling(Plugin):
        def enqueue(
            self, input_desc: Any, output_desc: Any, inputs: Any, outputs: Any, workspace: int, stream: int
        ) -> None:
            cuda = cuda_runtime()
            assert cuda is not None
            kinds.extend(cuda.location(address).kind.name for address in (*inputs, *outputs))
            twice = 2 * np.ctypeslib.as_array(ctypes.cast(inputs[0], ctypes.POINTER(ctypes.c_float)), X.shape)
            cuda.copy(outputs[0], gpu.put(twice), twice.nbytes, stream or 1)  # as a kernel writes to it

    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, X.shape)
    networks.mark(network, y=network.add_plugin_v3([x], [], Doubling()).get_output(0))
    equal(trt.compile(network)({"x": X})["y"], 2 * X)
    return kinds


@fact
def engine_on_the_host(gpu: Any) -> Any:
    """an engine on the CPU takes addresses of the device"""
    with jax.default_device(jax.devices("cpu")[0]):
        context = doubling((4, 4))  # a shape of its own: this engine is on the CPU
        x, y = gpu.put(X[:4, :4]), gpu.allocate(64)
        assert context.execute_v2([x, y])
    equal(gpu.get(y, FLOAT, (4, 4)), 2 * X[:4, :4])


# ---------------------------------------------------------------------------- errors


@fact
def bad_addresses(gpu: Any) -> Any:
    """addresses that are null, freed, too small, read-only or nobody's are errors"""
    context = doubling()
    x, y, freed, small = gpu.put(X), gpu.allocate(X.nbytes), gpu.put(X), gpu.allocate(8)
    gpu.free(freed)
    texts: list[str] = []
    with Pages() as pages:
        for name, bad in {
            "null": 0,
            "freed": freed,
            "small": small,
            "guard": pages.guard,
            "wild": 2**47 - 4096,
        }.items():
            assert not context.execute_v2([bad, y]), f"{name} as an input"
            assert not context.execute_v2([x, bad]), f"{name} as an output"
            texts.append(context.error_recorder.texts[-1].splitlines()[0])
        assert not context.execute_v2([x, pages.read_only]), "read-only"
    assert context.execute_v2([x, y])
    is_double(gpu, y)
    return texts


@fact
def bad_stream(gpu: Any) -> Any:
    """a stream that was destroyed is an error"""
    if isinstance(gpu, RealGpu):
        return "not tried: a real runtime reads the memory of the handle, and may end the process"
    context = doubling()
    assert not bind(context, x=gpu.put(X), y=gpu.allocate(X.nbytes)).execute_async_v3(12345)
    return context.error_recorder.texts[-1].splitlines()[0]


@fact
def random_addresses(gpu: Any) -> Any:
    """a thousand random addresses of inputs are errors or memory"""
    context, y, rng = doubling((3,)), gpu.allocate(12), random.Random(0)
    outcomes = [
        context.execute_v2([address, y])
        for address in (rng.getrandbits(rng.choice([8, 20, 40, 47, 64])) for _ in range(1000))
    ]
    x = gpu.put(X)
    assert doubling().execute_v2([x, gpu.allocate(X.nbytes)])
    return f"{sum(outcomes)} of 1000 were memory"


@fact
def another_context(gpu: Any) -> Any:
    """memory and the default stream of another context, such as that of ``pycuda.autoinit``, are in order"""
    with gpu.in_another_context():
        context, full, x = doubling(), gpu.put(X), gpu.put(0 * X)
        y = gpu.allocate(X.nbytes)
        bind(context, x=x, y=y)
        for stream in (0, gpu.stream()):
            gpu.copy(x, full, X.nbytes, stream or 1)
            assert context.execute_async_v3(stream)
            gpu.advance(stream or 1)
            is_double(gpu, y)
    x, y = gpu.put(X), gpu.allocate(X.nbytes)
    assert context.execute_v2([x, y])
    is_double(gpu, y)


@fact
def cost(gpu: Any) -> Any:
    """the time of a call of a small program, on the host"""
    context, stream = doubling((3,)), gpu.stream()
    bind(context, x=gpu.put(X), y=gpu.allocate(12))
    times: list[float] = []
    for _ in range(300):
        begin = time.perf_counter()
        assert context.execute_async_v3(stream)
        times.append(time.perf_counter() - begin)
        gpu.advance(stream)
    return f"{1e6 * float(np.median(times)):.0f} us"


def main() -> int:
    """Check all facts; the number of those that do not hold."""
    patch = pytest.MonkeyPatch()
    gpu: Any = RealGpu() if has_gpu() else _dry(patch)
    print(f"{type(gpu).__name__}, jax {jax.__version__}, {jax.devices()}", flush=True)
    failed = 0
    for check in FACTS:
        begin = time.perf_counter()
        try:
            outcome, detail = "ok", check(gpu)
        except Exception as error:
            outcome, detail = "FAILED", "".join(traceback.format_exception(error)[-2:])
            failed += 1
        shown = " ".join(str("" if detail is None else detail).split())
        print(f"{outcome} {check.__name__} ({time.perf_counter() - begin:.2f} s): {check.__doc__}; {shown}", flush=True)
    print(f"{len(FACTS) - failed} of {len(FACTS)} facts hold", flush=True)
    patch.undo()
    return failed


def _dry(patch: pytest.MonkeyPatch) -> DryGpu:
    return fake_cuda.install(patch, DryGpu)


if __name__ == "__main__":
    faulthandler.enable()
    sys.exit(min(main(), 1))
