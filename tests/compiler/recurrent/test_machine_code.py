"""Kernels in forks, and when Ctrl-C arrives in a call."""

import subprocess
import sys
from pathlib import Path

import pytest

from netloop.compiler.machine_code.processor import processor

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(processor() is None, reason="the extra is not installed, or there are no kernels"),
]

IN_FORKS = """
import netloop as trt
from netloop.compiler.machine_code.processor import processor
from tests.compiler.recurrent.test_kernel import arrays_of, assert_right, cell
from tests.process.test_forked import in_fork
from tests.support.ffi_frames import Api
from tests.support.recurrent_layers import recurrent_layer

layer, own = recurrent_layer(3, units=(64,), rows=(16,)), cell(rows=40, units=320)
engine = trt.compile(layer.network)
engine(layer.inputs)
print({strategy.name for strategy in engine.loop_strategies.values()})
print(in_fork(lambda: engine(layer.inputs)))
# threads of the pool are not in the fork, and nobody comes
print(in_fork(lambda: assert_right(own, processor(), arrays_of(own, 30), 30, api=Api(4, refuses=False))))
"""

INTERRUPTED = """
import os, signal, threading, time
import jax.numpy as jnp, numpy as np
import netloop as trt
from jax import lax

matrix = np.random.default_rng(0).standard_normal((256, 1024)).astype(np.float32) / 16
row = np.ones((1, 1024), np.float32)

def last(x):
    def step(states, x):
        h, c = states
        i, f, g, o = jnp.split(x @ row + h @ matrix, 4, -1)
        c = lax.logistic(f) * c + lax.logistic(i) * jnp.tanh(g)
        return (lax.logistic(o) * jnp.tanh(c), c), None
    return lax.scan(step, (jnp.zeros((8, 256)),) * 2, x)[0][0]

def call():
    begin = time.monotonic()
    (result,) = engine({name: x}).values()
    return np.asarray(result), time.monotonic() - begin

x = np.ones((20_000, 8, 1), np.float32)
engine = trt.compile(trt.from_jax(last, x))
name = engine.network.inputs[0].name
print({strategy.name for strategy in engine.loop_strategies.values()})
first, seconds = call()
threading.Timer(seconds / 4, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    call()
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted")
print(np.array_equal(first, call()[0]))
"""


def printed(code):
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200, cwd=root)
    assert not done.returncode, done.stderr
    return done.stdout.splitlines()


def test_a_kernel_in_a_fork_computes_and_an_engine_says_why_not():
    strategies, engine, kernel = printed(IN_FORKS)

    assert strategies == "{'kernel'}"
    assert "NL612" in engine
    assert kernel == "returns NoneType"


def test_ctrl_c_in_a_call_is_raised_and_later_calls_are_right():
    assert printed(INTERRUPTED) == ["{'kernel'}", "interrupted", "True"]
