"""Arrays and devices on a GPU: one line for each fact, whatever became of those before.

    python -m tests.gpu.check_arrays

It needs jax with its CUDA plugin, torch, numpy and pytest, and takes CuPy if it is there. Without a GPU it tries itself
on the CPU, where facts about GPUs are skipped. The exit status is the number of facts that do not hold.
"""

import faulthandler
import importlib
import sys
import time
import traceback
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import netloop as trt
from netloop.compiler.tuning import this_machine
from netloop.serve import Sequences, Server
from netloop.tools.cli import main as command
from netloop.tools.compat.device import free_and_total
from netloop.values.foreign_arrays import array_of
from tests.support.log import Log
from tests.support.networks import F, combine, counted, mark, stacked

HAS_GPU = jax.default_backend() == "gpu"
NAME = "cuda" if HAS_GPU else "cpu"
X = np.arange(256 * 256, dtype=F).reshape(256, 256) % 100
FACTS: list[Callable[[], str]] = []


class Skip(Exception):
    """The fact is about something that is not here."""


def fact(function: Callable[[], str]) -> Callable[[], str]:
    """Add a fact: a function whose name says it, which returns what else was seen."""
    FACTS.append(function)
    return function


def torch() -> Any:
    if find_spec("torch") is None:
        raise Skip("no torch")
    module: Any = importlib.import_module("torch")
    if HAS_GPU and not module.cuda.is_available():
        raise Skip("torch has no GPU")
    return module


def cupy() -> Any:
    if not HAS_GPU or find_spec("cupy") is None:
        raise Skip("no CuPy, or no GPU")
    return importlib.import_module("cupy")


def gpus(count: int) -> Any:
    if not HAS_GPU or jax.local_device_count() < count:
        raise Skip(f"fewer than {count} GPUs")
    return jax.local_devices()


def tensor(array: Any = X, device: str = NAME) -> Any:
    return torch().from_numpy(array.copy()).to(device)


def doubling(dtype: Any = trt.float32, shape: Any = (256, 256)) -> trt.INetworkDefinition:
    """y: twice x."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", dtype, shape)
    return mark(network, y=combine(network, x, x))


def products() -> trt.INetworkDefinition:
    """y: x times x times weights of ones, with memory between the products."""
    network = trt.INetworkDefinition()
    x, none = network.add_input("x", trt.float32, (256, 256)), trt.MatrixOperation.NONE
    weights = network.add_constant((256, 256), np.ones((256, 256), F))
    weights.name = "weights"
    square = network.add_matrix_multiply(x, none, x, none).get_output(0)
    return mark(network, y=network.add_matrix_multiply(square, none, weights.get_output(0), none).get_output(0))


def adding() -> trt.INetworkDefinition:
    """sn: s + x; y: twice x."""
    network = trt.INetworkDefinition()
    s, x = network.add_input("s", trt.float32, (256, 256)), network.add_input("x", trt.float32, (256, 256))
    return mark(network, sn=combine(network, s, x), y=combine(network, x, x))


def looping() -> trt.INetworkDefinition:
    """y[3, 256, 256]: x, x + 1, x + 2."""
    network = trt.INetworkDefinition()
    loop = counted(network, 3)
    state = loop.add_recurrence(network.add_input("x", trt.float32, (256, 256)))
    state.set_input(1, combine(network, state.get_output(0), 1))
    return mark(
        network, y=stacked(loop, state.get_output(0), network.add_constant((), np.array(3, np.int32)).get_output(0))
    )


def require_equal(got: Any, wanted: Any) -> None:
    np.testing.assert_array_equal(np.asarray(got), np.asarray(wanted))


def require_on(array: Any, device: Any) -> None:
    assert array.devices() == {device}, f"{array.devices()} and not {device}"


def address(array: Any) -> int:
    return array.unsafe_buffer_pointer() if isinstance(array, jax.Array) else array.ctypes.data


# ---------------------------------------------------------------------------- arrays in and out


@fact
def tensor_goes_in_without_a_copy() -> str:
    x = tensor()
    array = array_of(x)
    assert address(array) == x.data_ptr(), "another address"
    require_equal(trt.compile(doubling())(x=x)["y"], 2 * X)
    return f"{type(array).__name__} at {x.data_ptr():#x}"


@fact
def output_comes_out_without_a_copy() -> str:
    y = trt.compile(doubling())(x=tensor())["y"]
    out = torch().from_dlpack(y)
    assert out.data_ptr() == y.unsafe_buffer_pointer(), "another address"
    assert out.device.type == NAME
    require_equal(out.cpu(), 2 * X)
    return f"on {out.device}"


@fact
def element_types_go_in_without_a_copy() -> str:
    types = {name: getattr(torch(), name) for name in ("float64", "float16", "bfloat16", "int64", "int32", "int8")}
    types |= {name: getattr(torch(), name) for name in ("uint8", "bool", "float8_e4m3fn", "float8_e5m2")}
    seen = {}
    for name, dtype in types.items():
        x = tensor().to(dtype)
        try:
            array = array_of(x)
            seen[name] = "ok" if (str(array.dtype), address(array)) == (name, x.data_ptr()) else str(array.dtype)
        except ValueError as error:
            seen[name] = str(error)
    assert {*seen.values()} == {"ok"}, str(seen)
    return ", ".join(seen)


@fact
def bfloat16_is_computed() -> str:
    y = trt.compile(doubling(trt.bfloat16))(x=tensor().bfloat16())["y"]
    require_equal(torch().from_dlpack(y).float().cpu(), 2 * X)
    return str(y.dtype)


@fact
def tensors_that_are_transposed_have_gaps_or_are_not_aligned_are_right() -> str:
    require_equal(trt.compile(doubling())(x=tensor().T)["y"], 2 * X.T)
    x = tensor()[::2, ::4]
    require_equal(trt.compile(doubling(shape=(128, 64)))(x=x)["y"], 2 * X[::2, ::4])
    x = torch().cat([tensor().flatten()[:1], tensor().flatten()])[1:].reshape(256, 256)
    assert x.data_ptr() % 16
    require_equal(trt.compile(doubling())(x=x)["y"], 2 * X)
    one = tensor()[:1].expand(256, 256)
    require_equal(trt.compile(doubling())(x=one)["y"], np.broadcast_to(2 * X[:1], X.shape))
    return ""


@fact
def tensor_that_a_stream_still_writes_is_read_after_it() -> str:
    if not HAS_GPU:
        raise Skip("no GPU")
    module = torch()
    engine, stream = trt.compile(doubling()), module.cuda.Stream()
    for _ in range(5):
        x = module.zeros(256, 256, device="cuda")
        module.cuda.synchronize()
        with module.cuda.stream(stream):
            module.cuda._sleep(200_000_000)  # a tenth of a second
            x.copy_(tensor())
            y = engine(x=x)["y"]
        require_equal(y, 2 * X)
    return "5 times"


@fact
def output_that_is_still_computed_is_read_after_it() -> str:
    engine = trt.compile(products())
    for _ in range(5):
        y = torch().from_dlpack(engine(x=tensor())["y"])
        wanted = (X.astype(np.float64) @ X).sum(1, keepdims=True)
        np.testing.assert_allclose(y.cpu().numpy(), np.broadcast_to(wanted, X.shape), rtol=2e-2)
    return "5 times"


@fact
def tensor_that_requires_gradients_is_refused() -> str:
    with pytest.raises(trt.InputError, match=r"NL657(?s:.*)detach") as caught:
        trt.compile(doubling())(x=tensor().requires_grad_())
    return caught.value.findings[0].why


@fact
def donated_tensor_keeps_its_numbers() -> str:
    engine, s = trt.compile(adding(), donate=["s"]), tensor()
    for _ in range(3):
        require_equal(engine(s=s, x=tensor())["sn"], 2 * X)
    require_equal(s.cpu(), X)
    return ""


@fact
def interface_of_cuda_arrays_goes_in_without_a_copy() -> str:
    if not HAS_GPU:
        raise Skip("no GPU")

    class Interface:
        def __init__(self, x: Any) -> None:
            self._x = x

        @property
        def __cuda_array_interface__(self) -> Any:
            return self._x.__cuda_array_interface__

    x = tensor()
    torch().cuda.synchronize()
    array = array_of(Interface(x))
    assert address(array) == x.data_ptr(), "another address"
    require_equal(trt.compile(doubling())(x=Interface(x))["y"], 2 * X)
    return ""


@fact
def arrays_of_cupy_go_in_and_out_without_a_copy() -> str:
    x = cupy().asarray(X)
    assert address(array_of(x)) == x.data.ptr, "another address"
    y = trt.compile(doubling())(x=x)["y"]
    assert cupy().from_dlpack(y).data.ptr == y.unsafe_buffer_pointer(), "another address"
    require_equal(y, 2 * X)
    require_equal(trt.compile(doubling())(x=x[::-1])["y"], 2 * X[::-1])
    return ""


@fact
def managed_memory_of_cupy_goes_in() -> str:
    module = cupy()
    with module.cuda.using_allocator(module.cuda.malloc_managed):
        x = module.asarray(X)
    kind = x.__dlpack_device__()
    require_equal(trt.compile(doubling())(x=x)["y"], 2 * X)
    return f"DLPack's device {kind}, an array of {type(array_of(x)).__name__}"


@fact
def pinned_memory_goes_in() -> str:
    if not HAS_GPU:
        raise Skip("no GPU")
    x = tensor(device="cpu").pin_memory()
    array = array_of(x)
    require_equal(trt.compile(doubling())(x=x)["y"], 2 * X)
    return f"DLPack's device {x.__dlpack_device__()}, an array of {type(array).__name__}"


@fact
def numbers_of_64_bits_stay_so() -> str:
    x = torch().arange(16, device=NAME) + 2**40
    y = trt.compile(doubling(trt.int64, (16,)))(x=x)["y"]
    assert y.dtype == np.int64
    require_equal(y, 2 * (np.arange(16) + 2**40))
    return ""


@fact
def calls_with_tensors_take_as_long_as() -> str:
    engine, x = trt.compile(doubling()), tensor()
    times = {"tensor": x, "array of JAX": jnp.asarray(X), "numpy": X}
    shown = []
    for name, value in times.items():
        calls = [_seconds(lambda value=value: jax.block_until_ready(engine(x=value))) for _ in range(200)]
        shown.append(f"{name} {np.median(calls) * 1e6:.0f} us")
    return ", ".join(shown)


def _seconds(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


# ---------------------------------------------------------------------------- devices


@fact
def default_device_is_the_gpu() -> str:
    if not HAS_GPU:
        raise Skip("no GPU")
    engine = trt.compile(products())
    assert engine.device.platform == "gpu"
    for weights in engine.executable.weights:
        require_on(weights, engine.device)
    return f"{engine.device}, {engine.device.device_kind}"


@fact
def names_are_of_devices() -> str:
    names = ("gpu", "cuda", "gpu:0", "cuda:0", "cpu") if HAS_GPU else ("cpu", "cpu:0")
    found = {name: str(trt.compile(doubling(), device=name).device) for name in names}
    with pytest.raises(trt.InputError, match="NL656") as caught:
        trt.compile(doubling(), device="cuda:99")
    return f"{found}; {caught.value.findings[0].what}"


@fact
def engine_on_the_cpu_takes_tensors_of_the_gpu() -> str:
    engine = trt.compile(products(), device="cpu")
    cpu = jax.devices("cpu")[0]
    for x in (tensor(), X, jnp.asarray(X)):
        y = engine(x=x)["y"]
        require_on(y, cpu)
        np.testing.assert_allclose(np.asarray(y)[:, 0], (X.astype(np.float64) @ X).sum(1), rtol=1e-4)
    for weights in engine.executable.weights:
        require_on(weights, cpu)
    return "passes of CPUs" if "weight_prepacking" in engine.passes else ""


@fact
def engine_on_the_gpu_takes_tensors_of_the_cpu() -> str:
    engine = trt.compile(doubling(), device=NAME)
    cpu = jax.devices("cpu")[0]
    for x in (tensor(device="cpu"), X, jax.device_put(X, cpu)):
        y = engine(x=x)["y"]
        require_on(y, engine.device)
        assert y.committed
        require_equal(y, 2 * X)
    return f"{engine.program_count} program"


@fact
def new_weights_stay_on_the_device() -> str:
    engine = trt.compile(products(), device=NAME)
    refitter = trt.Refitter(engine, Log())
    assert refitter.set_named_weights("weights", np.zeros((256, 256), F))
    assert refitter.refit_cuda_engine()
    require_equal(engine(x=tensor())["y"], 0 * X)
    for weights in engine.executable.weights:
        require_on(weights, engine.device)
    return ""


@fact
def steps_slots_and_services_take_tensors() -> str:
    x = tensor()
    stepper = trt.Stepper(trt.compile(adding(), device=NAME), {"s": "sn"})
    for _ in range(3):
        require_equal(stepper(x=x)["y"], 2 * X)
    require_equal(stepper.states["s"], 3 * X)
    require_on(stepper.states["s"], stepper.device)
    slots = trt.SlotEngine(looping(), slots=2, device=NAME)
    require_equal(slots.submit({"x": x}).result()["y"], [X, X + 1, X + 2])
    with Sequences(trt.compile(adding(), device=NAME), {"s": "sn"}, sizes=[1]) as sequences:
        require_equal(sequences.step(0, {"x": x}, start=True)["y"], 2 * X)
    with Server(trt.compile(doubling(shape=(-1, 256)), device=NAME), (256,)) as server:
        require_equal(server(x=x)["y"], 2 * X)
    return ""


@fact
def functions_and_the_reference_take_tensors() -> str:
    function, weights = trt.to_jax(doubling())
    require_equal(function(weights, {"x": tensor()})["y"], 2 * X)
    require_equal(trt.evaluate(doubling(), {"x": tensor()})["y"], 2 * X)
    return ""


@fact
def second_gpu_computes_and_inputs_move_there() -> str:
    second = gpus(2)[1]
    engine = trt.compile(products(), device="cuda:1")
    assert engine.device == second
    for x in (tensor(), tensor(device="cuda:1"), X, jnp.asarray(X)):
        require_on(engine(x=x)["y"], second)
    assert torch().from_dlpack(engine(x=tensor())["y"]).device.index == 1
    return str(second)


@fact
def plan_is_loaded_on_the_current_gpu() -> str:
    second, module = gpus(2)[1], torch()
    plan = trt.compile(products()).serialize()
    module.cuda.set_device(1)
    module.zeros(1, device="cuda")
    try:
        engine = trt.Runtime(Log()).deserialize_cuda_engine(plan)
        assert engine is not None
        assert engine.device == second
    finally:
        module.cuda.set_device(0)
    return ""


@fact
def commands_compute_on_a_device() -> str:
    for name in dict.fromkeys([NAME, "cpu"]):
        assert command(["demo", "--length", "5", "--device", name]) == 0
    return ""


# ---------------------------------------------------------------------------- numbers


@fact
def memory_of_a_run_is_known() -> str:
    engine = trt.compile(products(), device=NAME)
    size = engine.device_memory_size_v2
    shown = str(engine.executable.latest.compiled.memory_analysis()) if engine.executable.latest else ""
    assert size >= X.nbytes, f"{size}: {shown}"
    return f"{size} bytes"


@fact
def memory_of_the_device_is_told() -> str:
    free, total = free_and_total()
    assert 0 < free <= total
    stats = jax.local_devices()[0].memory_stats()
    beside = f", torch {torch().cuda.mem_get_info()}" if HAS_GPU and find_spec("torch") else ""
    return f"{(free, total)}, JAX {stats}{beside}"


@fact
def abilities_are_those_of_the_gpu() -> str:
    builder = trt.Builder(trt.Logger())
    values = builder.platform_has_fast_fp16, builder.platform_has_fast_int8, builder.platform_has_tf32
    capability = getattr(jax.local_devices()[0], "compute_capability", None)
    return f"fp16, int8, tf32 {values}; compute capability {capability!r}; {this_machine()}"


def check(function: Callable[[], str]) -> bool:
    """Print the line of a fact; whether it holds or is skipped."""
    name, began = function.__name__.replace("_", " "), time.perf_counter()
    try:
        more = function()
    except Skip as error:
        print(f"skipped  {name}: {error}", flush=True)
        return True
    except BaseException as error:
        lines = traceback.format_exception(error)
        print(f"FAILED   {name}: {type(error).__name__}: {' '.join(str(error).split())[:500]}", flush=True)
        print("".join(lines[-3:]), file=sys.stderr, flush=True)
        return isinstance(error, KeyboardInterrupt)
    print(f"holds    {name} ({time.perf_counter() - began:.1f} s){more and f': {more}'}", flush=True)
    return True


def main() -> int:
    """Check all facts; return the number of those that do not hold."""
    faulthandler.enable()
    dry = "" if HAS_GPU else ": no GPU, so this is a dry run"
    print(f"jax {jax.__version__}, {jax.local_devices()}{dry}", flush=True)
    failed = [function for function in FACTS if not check(function)]
    print(f"{len(failed)} of {len(FACTS)} facts do not hold")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
