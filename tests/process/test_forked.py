"""Forks of a process that has used JAX: what would wait forever raises, everything else works."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import netloop as trt
from netloop.process.forked import FORK
from tests.support import networks

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")


def in_fork(act) -> str:
    """What happens in a fork of this process: the line that it writes, or ``hangs``."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            outcome = f"returns {type(act()).__name__}"
        except BaseException as error:
            outcome = f"{type(error).__name__}: {error}".partition("\n")[0]
        os.write(writing, outcome.encode())
        os._exit(0)
    os.close(writing)
    end = time.monotonic() + 60
    while not os.waitpid(child, os.WNOHANG)[0]:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "hangs"
        time.sleep(0.01)
    with os.fdopen(reading) as pipe:
        return pipe.read()


def main() -> None:
    """The script of the tests, in a process of its own: pytest's has threads of other tests."""
    network, inputs = networks.running_sum(), {"x": networks.X}
    print("before JAX:", in_fork(lambda: trt.compile(network)(inputs)))
    engine = trt.compile(network)
    function, weights = trt.to_jax(network)
    plan, pickled = engine.serialize(), pickle.dumps(engine)
    watched = [network.get_layer(0).get_output(0)]
    acts = {
        "call": lambda: engine(inputs),
        "first call": lambda: trt.compile(networks.dynamic_axis()),
        "compile": lambda: trt.compile(network),
        "compare": lambda: trt.compare(network, inputs),
        "watch": lambda: engine.watch(inputs, watched, print),
        "to_jax": lambda: trt.to_jax(network),
        "function": lambda: function(weights, inputs),
        "load": lambda: trt.Runtime(trt.Logger()).deserialize_cuda_engine(plan),
        "random": lambda: trt.evaluate(random_fill(), {}),
        "fork of the fork": lambda: print(in_fork(lambda: engine(inputs))),
        "evaluate": lambda: trt.evaluate(network, inputs),
        "trace": lambda: trt.trace(network, inputs),
        "check": lambda: trt.check(network),
        "save": lambda: trt.plan.loads(trt.plan.dumps(network)),
        "unpickle": lambda: pickle.loads(pickled),
        "call of a pickled one": lambda: pickle.loads(pickled)(inputs),
        "pickled again": lambda: pickle.loads(pickle.dumps(pickle.loads(pickled))),
        "attribute of it": lambda: pickle.loads(pickled).num_layers,
    }
    for name, act in acts.items():
        print(f"{name}:", in_fork(act), flush=True)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        print("pool:", failure_of(lambda: pool.apply_async(engine, [inputs]).get(60)))
    np.testing.assert_array_equal(engine(inputs)["y"], trt.evaluate(network, inputs)["y"])


def failure_of(act) -> str:
    try:
        return f"returns {act()}"
    except Exception as error:
        return f"{type(error).__name__}: {error}".partition("\n")[0]


def random_fill() -> trt.INetworkDefinition:
    network = trt.INetworkDefinition()
    network.mark_output(network.add_fill((3,), trt.FillOperation.RANDOM_UNIFORM).get_output(0))
    return network


def test_fork_refuses_what_would_wait_forever():
    command = [sys.executable, "-W", "ignore", "-c", "from tests.process.test_forked import main; main()"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200)
    lines = ran.stdout.splitlines()
    refused = "ExecutionError: NL612: this process was forked from one that had used JAX, so JAX does not work in it"

    assert lines == [
        "before JAX: returns dict",
        f"call: {refused}",
        f"first call: {refused}",
        f"compile: {refused}",
        f"compare: {refused}",
        f"watch: {refused}",
        f"to_jax: {refused}",
        f"function: {refused}",
        "load: returns NoneType",
        f"random: {refused}",
        refused,
        "fork of the fork: returns NoneType",
        "evaluate: returns dict",
        "trace: returns Trace",
        "check: returns list",
        "save: returns INetworkDefinition",
        "unpickle: returns LostEngine",
        f"call of a pickled one: {refused}",
        "pickled again: returns LostEngine",
        f"attribute of it: {refused}",
        f"pool: {refused}",
    ], ran.stderr
    assert "[ERROR] NL612" in ran.stderr


def test_process_that_was_started_is_no_fork():
    assert not FORK.lost_jax
