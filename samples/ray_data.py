"""An engine over 100,000 rows by Ray Data, on two workers, as on the machines of a cluster.

``trt.Batches`` is the class of which Ray makes an instance in each worker: the engine travels as its plan, ragged
batches are padded, and JAX's cache on the disk lets the second worker load what the first one compiled. It needs the
package ``ray[data]``; how many rows a second were computed is printed on stderr.

    python samples/ray_data.py

It prints:

    100000 rows, equal to one process: True
"""

import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np
import ray

import netloop as trt

ROWS, STEPS, SIZE, BATCH = 100_000, 16, 32, 1024


def recurrent_network() -> trt.INetworkDefinition:
    """Input x [-1,16,32], rows of 16 steps. Output y [-1,32], the last state of h = tanh(x w + h u)."""
    network, random = trt.INetworkDefinition(), np.random.default_rng(0)
    x = network.add_input("x", trt.float32, (-1, STEPS, SIZE))
    w, u = (
        network.add_constant((SIZE, SIZE), random.normal(0, 0.2, (SIZE, SIZE)).astype(np.float32)).get_output(0)
        for _ in range(2)
    )
    loop = network.add_loop()
    loop.add_trip_limit(network.add_constant((), np.array([STEPS], np.int32)).get_output(0), trt.TripLimit.COUNT)
    step = loop.add_iterator(x, 1).get_output(0)
    first = network.add_reduce(x, trt.ReduceOperation.PROD, 1 << 1, False).get_output(0)
    zero = network.add_constant((1, 1), np.array([[0]], np.float32)).get_output(0)
    state = loop.add_recurrence(network.add_elementwise(first, zero, trt.ElementWiseOperation.PROD).get_output(0))
    plain = trt.MatrixOperation.NONE
    of_step, of_state = (
        network.add_matrix_multiply(tensor, plain, weights, plain).get_output(0)
        for tensor, weights in ((step, w), (state.get_output(0), u))
    )
    total = network.add_elementwise(of_step, of_state, trt.ElementWiseOperation.SUM).get_output(0)
    state.set_input(1, network.add_activation(total, trt.ActivationType.TANH).get_output(0))
    y = loop.add_loop_output(state.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0)
    y.name = "y"
    network.mark_output(y)
    return network


def by_workers(engine: trt.ICudaEngine, x: np.ndarray) -> np.ndarray:
    """The outputs of two workers, which may come in any order of the batches."""
    rows = ray.data.from_numpy(np.array_split(x, 20)).rename_columns({"data": "x"})
    two = ray.data.ActorPoolStrategy(size=2)
    made = rows.map_batches(trt.Batches, fn_constructor_args=(engine, [BATCH]), batch_size=BATCH, compute=two)
    return np.concatenate([batch["y"] for batch in made.iter_batches(batch_size=None)])


def timed(name: str, run: Callable[[], np.ndarray]) -> np.ndarray:
    """What a function returns; its throughput is printed on stderr."""
    begin = time.perf_counter()
    made = run()
    print(f"{name}: {ROWS / (time.perf_counter() - begin):,.0f} rows a second", file=sys.stderr)
    return made


def main() -> None:
    """Compute the rows in one process, then by two workers."""
    with tempfile.TemporaryDirectory() as programs:
        cached = {"JAX_COMPILATION_CACHE_DIR": programs, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
        # before JAX has threads, as Ray forks
        ray.init(num_cpus=2, include_dashboard=False, logging_level=logging.ERROR, runtime_env={"env_vars": cached})
        ray.data.DataContext.get_current().enable_progress_bars = sys.stderr.isatty()

        engine = trt.compile(recurrent_network())
        x = np.random.default_rng(1).normal(size=(ROWS, STEPS, SIZE)).astype(np.float32)
        alone = timed("one process", lambda: np.asarray(trt.Batches(engine, [BATCH])({"x": x})["y"]))
        outputs = timed("two workers, with their start", lambda: by_workers(engine, x))
        ray.shutdown()

    same = np.allclose(np.sort(outputs, 0), np.sort(alone, 0), atol=1e-6)
    print(f"{len(outputs)} rows, equal to one process: {same}")


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    main()
