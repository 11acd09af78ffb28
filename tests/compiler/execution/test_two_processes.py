"""A mesh of the devices of two processes, of which one ends."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from tests.project.pages import ROOT

SECONDS = 60
PROCESS = """
import os
import signal
import socket
import sys

import jax
import numpy as np

import netloop as trt
from tests.support.networks import count_is_an_input

number, dying, address = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
try:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
except (AttributeError, ValueError):
    sys.exit("no gloo")
jax.distributed.initialize(address, num_processes=2, process_id=number, heartbeat_timeout_seconds=10)
engine = trt.shard(count_is_an_input(), jax.make_mesh((2,), ("rows",)))
n = np.int32([1, 2])
jax.block_until_ready(engine({"n": n}))
print("called", flush=True)
if number == dying:
    os.kill(os.getpid(), signal.SIGKILL)
while True:
    jax.block_until_ready(engine({"n": n}))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="a process kills itself with a signal of POSIX")
@pytest.mark.parametrize("dying", [0, 1], ids=["the one that coordinates", "the other"])
def test_the_end_of_a_process_ends_the_other_with_a_message(dying):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    settings = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=1"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(number), str(dying), f"localhost:{port}"],
            cwd=ROOT,
            env=settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    try:
        ended = [value.communicate(timeout=SECONDS) for value in (processes[dying], processes[1 - dying])]
    finally:
        for process in processes:
            process.kill()
    if "no gloo" in ended[0][1]:
        pytest.skip("this jaxlib has no gloo")

    assert processes[dying].returncode == -signal.SIGKILL, ended[0][1]
    printed, message = ended[1]
    assert printed.splitlines()[-1] == "called"
    assert processes[1 - dying].returncode not in (0, None)
    assert "distributed service detected fatal errors" in message or "Gloo" in message, message
