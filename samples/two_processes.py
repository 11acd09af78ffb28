"""Rows, and parts of weights, on two processes of two devices each, as on two machines.

A process of a cluster calls ``jax.distributed.initialize`` first; here the script starts both, on the CPU, where gloo
joins them. First each row ends a loop by itself, and one that fails makes both raise. Then a decoder, whose weights
are cut into four parts, makes tokens.

    python samples/two_processes.py

It prints:

    process 0: 4 devices, rows equal to one process: True
    process 0: NL609: a row takes too long
    process 0: tokens equal to one process: True
    process 1: 4 devices, rows equal to one process: True
    process 1: NL609: a row takes too long
    process 1: tokens equal to one process: True
"""

import os
import socket
import subprocess
import sys

import jax
import numpy as np
from jax.experimental.multihost_utils import process_allgather
from jax.sharding import PartitionSpec as P

import netloop as trt

ROWS, FIRST = np.array([1, 2, 3, 5, 30, 60, 99, 100], np.float32), np.array([7], np.int32)
SHAPES = {"embedding": (100, 32), "up": (32, 128), "down": (128, 32), "out": (32, 100)}
RANDOM = np.random.default_rng(0)
WEIGHTS = {name: RANDOM.normal(0, shape[0] ** -0.5, shape).astype(np.float32) for name, shape in SHAPES.items()}
CUT = {"*.up": P(None, "parts"), "*.down": P("parts")}


def generate(weights: dict[str, jax.Array], first: jax.Array) -> jax.Array:
    """Twenty tokens [20, 1], each the likeliest one after the token before."""

    def step(token: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
        x = weights["embedding"][token]
        x = jax.nn.relu(x @ weights["up"]) @ weights["down"]
        token = jax.numpy.argmax(x @ weights["out"], axis=1).astype(token.dtype)
        return token, token

    return jax.lax.scan(step, first, None, length=20)[1]


def run(number: int, address: str) -> None:
    """One of the two processes."""
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(address, num_processes=2, process_id=number)

    # two rows on each device: of each, the first of x, 2 x, 4 x, ... that is at least 100
    network = trt.from_jax(lambda x: jax.lax.while_loop(lambda x: x < 100, lambda x: x + x, x), ROWS[0], names="x")
    engine = trt.shard(network, jax.make_mesh((jax.device_count(),), ("rows",)), max_trips=10)
    (steps,) = process_allgather(engine({"x": ROWS}), tiled=True).values()
    alone = trt.compile(network)
    equal = np.array_equal(steps, [value for row in ROWS for value in alone({"x": row}).values()])
    print(f"process {number}: {jax.device_count()} devices, rows equal to one process: {equal}")
    try:
        engine({"x": np.where(ROWS[-1] == ROWS, np.float32(1e-3), ROWS)})
    except trt.ExecutionError as error:
        print(f"process {number}: {error.findings[0].code}: a row takes too long")
    # a quarter of two weights on each device
    network = trt.from_jax(generate, WEIGHTS, FIRST, weights="weights", names=["weights", "first"])
    engine = trt.shard(network, jax.make_mesh((jax.device_count(),), ("parts",)), in_specs=CUT)
    tokens = process_allgather(engine({"first": FIRST}), tiled=True)
    expected = trt.compile(network)({"first": FIRST})
    equal = all(np.array_equal(tokens[name], value) for name, value in expected.items())
    print(f"process {number}: tokens equal to one process: {equal}")


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
        for process in processes:
            lines = process.communicate(timeout=120)[0].splitlines()
            print("\n".join(line for line in lines if line.startswith("process ")))  # gloo writes lines too
    finally:
        for process in processes:
            process.kill()


if __name__ == "__main__":
    if len(sys.argv) == 3:
        run(int(sys.argv[1]), sys.argv[2])
    else:
        main()
