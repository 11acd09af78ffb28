"""Rows on two processes of two devices each, as on two machines: each row ends its loop by itself.

A process of a cluster calls ``jax.distributed.initialize`` first; here the script starts both, on the CPU, where gloo
joins them. Both call the engine with the same rows. A row that fails makes both raise.

    python samples/two_processes.py

It prints:

    process 0: 4 devices, rows equal to one process: True
    process 0: NL601: a row is too long
    process 1: 4 devices, rows equal to one process: True
    process 1: NL601: a row is too long
"""

import os
import socket
import subprocess
import sys

import jax
import numpy as np
from jax.experimental.multihost_utils import process_allgather

import netloop as trt

ROOM = 8
"""The number of values that a row has room for."""
X = np.array([1, 2, 3, 5, 30, 60, 99, 100], np.float32)


def doubling() -> trt.INetworkDefinition:
    """Input x []. Outputs: y [], the first of x, 2 x, 4 x, ... that is at least 100; all [8], those before it."""
    network = trt.Builder(trt.Logger()).create_network()
    loop = network.add_loop()
    state = loop.add_recurrence(network.add_input("x", trt.float32, ()))
    now = state.get_output(0)
    hundred = network.add_constant((), np.array(100, np.float32)).get_output(0)
    goes_on = network.add_elementwise(now, hundred, trt.ElementWiseOperation.LESS).get_output(0)
    loop.add_trip_limit(goes_on, trt.TripLimit.WHILE)
    state.set_input(1, network.add_elementwise(now, now, trt.ElementWiseOperation.SUM).get_output(0))
    last = loop.add_loop_output(now, trt.LoopOutput.LAST_VALUE)
    every = loop.add_loop_output(now, trt.LoopOutput.CONCATENATE)
    every.set_input(1, network.add_constant((), np.array(ROOM, np.int32)).get_output(0))
    for name, layer in {"y": last, "all": every}.items():
        layer.get_output(0).name = name
        network.mark_output(layer.get_output(0))
    return network


def run_rows(number: int, address: str) -> None:
    """One of the two processes."""
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(address, num_processes=2, process_id=number)
    network = doubling()
    engine = trt.shard(network, jax.make_mesh((jax.device_count(),), ("rows",)))
    made = process_allgather(engine({"x": X}), tiled=True)

    alone = trt.compile(network)
    rows = [alone({"x": each}) for each in X]
    equal = all(np.array_equal(made[name], np.stack([row[name] for row in rows])) for name in made)
    print(f"process {number}: {jax.device_count()} devices, rows equal to one process: {equal}")
    try:
        engine({"x": np.where(X[-1] == X, np.float32(1e-3), X)})
    except trt.ExecutionError as error:
        print(f"process {number}: {error.findings[0].code}: a row is too long")


def main() -> None:
    """Start both processes, and print what they write."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    settings = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    processes = [
        subprocess.Popen(
            [sys.executable, __file__, str(number), address], env=settings, stdout=subprocess.PIPE, text=True
        )
        for number in range(2)
    ]
    try:
        for each in processes:
            written = each.communicate(timeout=120)[0].splitlines()
            print("\n".join(line for line in written if not line.startswith("[Gloo]")))
    finally:
        for each in processes:
            each.kill()


if __name__ == "__main__":
    if len(sys.argv) == 3:
        run_rows(int(sys.argv[1]), sys.argv[2])
    else:
        main()
