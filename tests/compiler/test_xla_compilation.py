"""Ctrl-C while XLA compiles: the call ends at once, the process in order, and the next compilation works."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

import netloop as trt
from netloop.compiler import xla_compilation
from netloop.compiler.host.compiled_pieces import MOST_TRIPS_AT_ONCE
from netloop.compiler.host.numpy_layers import FEW
from netloop.compiler.lower.program import Program
from netloop.compiler.lower.weight_folding import SMALLEST
from netloop.compiler.xla_compilation import XlaFunction, compile_lowered
from netloop.model.check import require_valid
from tests.support import networks
from tests.support.devices import only_on_cpus

ROOT = Path(__file__).parents[2]
X = np.eye(8, dtype=np.float32)
SUMS = trt.evaluate(networks.running_sum(), {"x": networks.X})


class Lowered:
    """A lowered program whose compilation is a function of its compiler options."""

    def __init__(self, compile):
        self.of_options = compile

    def compile(self, compiler_options):
        return Compiled(self.of_options(compiler_options))


class Compiled(NamedTuple):
    """What a compilation returned, as a compiled program without text."""

    result: Any

    def as_text(self):
        return ""

    def runtime_executable(self):
        return self

    def local_devices(self):
        return jax.devices()


@contextmanager
def interrupt_after(seconds: float):
    """Ctrl-C, so many seconds from now."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    yield
    timer.join()


@only_on_cpus("the program runs on the device that there is")
def test_faults_are_looked_for_on_cpus_that_are_no_default(monkeypatch):
    texts = []
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(xla_compilation, "options_without_faults", lambda text: texts.append(text) or {})
    XlaFunction(lambda x: x + 1)(np.float32(1))

    assert len(texts) == 1


def test_interrupt_leaves_a_compilation_at_once():
    release, ended = threading.Event(), threading.Event()

    def compile(options):
        release.wait(60)
        ended.set()

    with pytest.raises(KeyboardInterrupt), interrupt_after(0.2):
        compile_lowered(Lowered(compile), {})

    assert not ended.is_set()
    release.set()
    assert ended.wait(100)
    assert compile_lowered(Lowered(dict), {"next": True}).result == {"next": True}


def test_signal_handler_of_a_script_can_leave_a_compilation():
    def expired(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    release = threading.Event()
    with pytest.raises(TimeoutError):
        compile_lowered(Lowered(lambda options: release.wait(60)), {})
    signal.signal(signal.SIGALRM, before)
    release.set()


def test_error_of_a_compilation_reaches_its_caller():
    with pytest.raises(ZeroDivisionError):
        compile_lowered(Lowered(lambda options: 1 // 0), {})


def test_compilation_has_the_settings_of_its_caller():
    def settings(options):
        config = jax.config
        return config.jax_enable_x64, config.jax_log_compiles, config.jax_debug_nans, threading.current_thread().name

    name = "netloop compilation"
    with jax.debug_nans(True):
        assert compile_lowered(Lowered(settings), {}).result == (True, False, False, name)
        with jax.log_compiles():
            assert compile_lowered(Lowered(settings), {}).result == (True, True, False, name)
    assert threading.stack_size() == 0


def test_other_threads_compile_by_themselves():
    names = []
    compile = Lowered(lambda options: names.append(threading.current_thread().name))
    thread = threading.Thread(target=compile_lowered, args=(compile, {}), name="own")
    thread.start()
    thread.join(100)

    assert names == ["own"]


def test_first_call_compiles_once(caplog):
    double = XlaFunction(lambda x: 2 * x)
    with jax.log_compiles():
        results = [double(np.float32(number)) for number in (1, 2)]

    assert results == [2, 4]
    assert sum("Finished XLA compilation" in message for message in caplog.messages) == 1


def host_program(network: trt.INetworkDefinition) -> trt.ICudaEngine:
    """An engine that runs on the host, with a compiled piece."""
    x = network.add_input("x", trt.float32, X.shape)
    network.mark_output(network.add_non_zero(x).get_output(0))
    y = x
    for _ in range(FEW + 1):  # numpy would compute fewer
        y = network.add_unary(y, trt.UnaryOperation.NEG).get_output(0)
    network.mark_output(y)
    return trt.compile(network)


def chunked_loop(network: trt.INetworkDefinition) -> trt.ICudaEngine:
    """An engine whose loop runs in chunks of iterations."""
    loop = network.add_loop()
    loop.add_trip_limit(network.add_constant((), np.array(MOST_TRIPS_AT_ONCE + 2)).get_output(0), trt.TripLimit.COUNT)
    recurrence = loop.add_recurrence(network.add_input("x", trt.float32, X.shape))
    recurrence.set_input(1, network.add_unary(recurrence.get_output(0), trt.UnaryOperation.NEG).get_output(0))
    network.mark_output(loop.add_loop_output(recurrence.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0))
    return trt.compile(network, interruptible=True)


def folded_weights(network: trt.INetworkDefinition) -> trt.ICudaEngine:
    """An engine that multiplies weights when they are loaded, which numpy does not do."""
    weights = network.add_constant((SMALLEST, 2), np.ones((SMALLEST, 2), np.float32)).get_output(0)
    two = network.add_constant((2,), np.ones(2, np.float32)).get_output(0)
    none, vector = trt.MatrixOperation.NONE, trt.MatrixOperation.VECTOR
    product = network.add_matrix_multiply(weights, none, two, vector).get_output(0)
    x = network.add_shuffle(network.add_input("x", trt.float32, X.shape))
    x.reshape_dims = (X.size, 1)
    row = network.add_unsqueeze(product, network.add_constant((1,), np.array([0], np.int32)).get_output(0))
    both = network.add_elementwise(x.get_output(0), row.get_output(0), trt.ElementWiseOperation.PROD)
    network.mark_output(both.get_output(0))
    return trt.compile(network)


@pytest.mark.parametrize("make", [host_program, chunked_loop, folded_weights])
def test_interrupt_leaves_what_the_first_call_compiles(monkeypatch, network, make):
    def interrupted(lowered, options=None):
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(xla_compilation, "compile_lowered", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make(network)({"x": X})

    engine = trt.compile(network, interruptible=make is chunked_loop)
    result, expected = engine({"x": X}), trt.evaluate(network, {"x": X})
    for name, value in expected.items():
        np.testing.assert_array_equal(result[name], value)


# ---------------------------------------------------------------------------- processes

SLOW = """
import atexit, sys, time
import netloop as trt
from netloop.compiler import xla_compilation
from tests.compiler.test_xla_compilation import Lowered, X, long_to_compile
from tests.support import networks

atexit.register(print, "at exit")
unflushed = open(sys.argv[1], "w")
unflushed.write("text")
real = xla_compilation.compile_lowered

def compile_slowly(lowered, options):
    print("compiling", flush=True)
    seconds = float(sys.argv[2])
    return real(Lowered(lambda options: time.sleep(seconds)) if seconds else lowered, options)

xla_compilation.compile_lowered = compile_slowly
"""
UNCAUGHT = SLOW + "trt.compile(long_to_compile(int(sys.argv[3])))"
CAUGHT = SLOW + (
    """
try:
    trt.compile(long_to_compile(int(sys.argv[3])))
except KeyboardInterrupt:
    print("interrupted")
xla_compilation.compile_lowered = real
print(*trt.compile(networks.running_sum())({"x": networks.X}), flush=True)
"""
)


def long_to_compile(products: int) -> trt.INetworkDefinition:
    """A loop with products in its body, each of the two before it, of which XLA compiles 1300 in 5 to 10 seconds."""
    network = trt.INetworkDefinition()
    loop = network.add_loop()
    loop.add_trip_limit(network.add_constant((), np.array(3, np.int32)).get_output(0), trt.TripLimit.COUNT)
    recurrence = loop.add_recurrence(network.add_input("x", trt.float32, X.shape))
    a = b = recurrence.get_output(0)
    for number in range(products):
        turn = trt.MatrixOperation.TRANSPOSE if number % 2 else trt.MatrixOperation.NONE
        product = network.add_matrix_multiply(a, trt.MatrixOperation.NONE, b, turn).get_output(0)
        a, b = b, network.add_activation(product, trt.ActivationType.TANH).get_output(0)
    recurrence.set_input(1, b)
    output = loop.add_loop_output(recurrence.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0)
    output.name = "y"
    network.mark_output(output)
    return network


def interrupted(code: str, file: Path, seconds: float) -> tuple[float, int, str, str]:
    """Run a script, interrupt its compilation; return for how long it still ran, its status and what it printed."""
    command = [sys.executable, "-c", code, file, str(seconds), "3" if seconds else "1300"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "compiling\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        out, errors = process.communicate(timeout=200)
        return time.monotonic() - began, process.returncode, out, errors


def check_uncaught(file: Path, seconds: float) -> None:
    took, status, out, errors = interrupted(UNCAUGHT, file, seconds)

    assert took < (seconds / 2 or 4)
    assert (status, out) == (-signal.SIGINT, "at exit\n"), errors
    assert errors.endswith("\nKeyboardInterrupt\n")
    assert file.read_text() == "text"


def check_caught(file: Path, seconds: float) -> None:
    _, status, out, errors = interrupted(CAUGHT, file, seconds)

    assert (status, out) == (0, "interrupted\ny\nat exit\n"), errors
    assert errors == "waiting for XLA, which still compiles what was interrupted; Ctrl-C ends the process\n"


@pytest.mark.skipif(sys.platform == "win32", reason="no other process can be sent a Ctrl-C")
class TestProcess:
    def test_interrupt_ends_a_script_that_compiles(self, tmp_path):
        check_uncaught(tmp_path / "file", 60)

    @pytest.mark.slow
    def test_process_waits_for_a_compilation_that_was_left(self, tmp_path):
        check_caught(tmp_path / "file", 4)

    @pytest.mark.slow
    def test_interrupt_ends_a_script_while_xla_compiles(self, tmp_path):
        check_uncaught(tmp_path / "file", 0)

    @pytest.mark.slow
    def test_process_waits_for_xla(self, tmp_path):
        check_caught(tmp_path / "file", 0)


def interrupt_at_random(times: int) -> None:
    """Interrupt a compilation and a call again and again; what runs next must be in order."""
    network, inputs = long_to_compile(30), {"x": X}
    began = time.monotonic()
    expected = np.asarray(trt.compile(network)(inputs)["y"])
    longest = time.monotonic() - began
    chance = np.random.default_rng(0)
    for _ in range(times):
        with suppress(KeyboardInterrupt), interrupt_after(chance.uniform(0, longest)):
            trt.compile(network)(inputs)
        assert not jax.config.jax_enable_x64
        np.testing.assert_array_equal(trt.compile(networks.running_sum())({"x": networks.X})["y"], SUMS["y"])
    np.testing.assert_array_equal(trt.compile(network)(inputs)["y"], expected)
    print("in order")


@pytest.mark.slow
def test_any_interrupt_leaves_jax_and_netloop_as_they_were():
    # in a process of its own, because an interrupt in a destructor is only printed
    code = f"from {__name__} import interrupt_at_random; interrupt_at_random(40)"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=200)

    assert ran.stdout == "in order\n", ran.stderr


def test_option_that_a_release_of_xla_does_not_know_is_left_out():
    lowered = jax.jit(lambda x: x + 1).lower(1.0)

    compiled = compile_lowered(lowered, {"xla_gpu_an_option_of_another_release": 1})

    assert compiled(1.0) == 2


def test_function_is_compiled_once_for_threads_that_call_it_at_the_same_time(monkeypatch):
    compiled = []

    def compile(lowered, options):
        compiled.append(time.sleep(0.05))
        return compile_lowered(lowered, options)

    monkeypatch.setattr(xla_compilation, "compile_lowered", compile)
    double = XlaFunction(lambda x: 2 * x)
    with ThreadPoolExecutor(3) as threads:
        assert [*map(int, threads.map(double, [np.int32(n) for n in range(3)]))] == [0, 2, 4]

    assert len(compiled) == 1


def test_functions_of_one_program_are_traced_one_after_the_other():
    # each adds to the table of errors of the program, whose numbers are those of the error flags
    validated = require_valid(network := networks.running_sum())
    program = Program(validated.block.steps, network.outputs, network.types, validated.scopes)
    running = []

    def double(x):
        running.append(x)
        time.sleep(0.05)
        assert len(running) == 1
        running.clear()
        return 2 * x

    functions = [XlaFunction(lambda x: double(x), program) for _ in range(3)]
    with ThreadPoolExecutor(3) as threads:
        assert [*threads.map(lambda function: int(function(np.int32(1))), functions)] == [2, 2, 2]
