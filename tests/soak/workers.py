"""The threads of the soak: each repeats one kind of work until it is stopped."""

import threading
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np

import netloop as trt
from netloop.api.engine import ICudaEngine
from tests.soak.subjects import F, Inputs, Subject, drawn
from tests.support.builds import config_with_profile, doubling_network
from tests.support.networks import combine, constant, mark
from tests.support.strategies import Grower, assert_equal

MOST_INPUTS = 40
"""The number of inputs of a subject that are drawn from."""
MOST_NETWORKS = 30
"""The number of random networks that are compiled in turn; JAX's caches know all of them after the first turn."""
PAUSE = 0.005
"""The seconds between two rounds of a thread, in which the others run."""
GUARD = 64
"""The bytes behind an output that a context must leave alone."""

Shared = list[tuple[Subject, ICudaEngine]]
Work = Iterator[None]


class NoLog(trt.ILogger):
    """A logger that keeps nothing."""

    def log(self, severity: Any, message: str) -> None:
        """Drop a message."""


def call(shared: Shared, chance: Random) -> Work:
    """Call shared engines with changing shapes and values; some calls fail."""
    while True:
        subject, engine = chance.choice(shared)
        subject.check(chance.randrange(MOST_INPUTS), engine)
        yield


def run_contexts(shared: Shared, chance: Random) -> Work:
    """Run contexts of this thread's own on shared engines, with addresses of numpy arrays."""
    contexts = [(subject, engine.create_execution_context()) for subject, engine in shared]
    while True:
        subject, context = chance.choice(contexts)
        number = chance.randrange(MOST_INPUTS)
        subject.compare(number, _run_context(context, subject, number))
        yield


def _run_context(context: Any, subject: Subject, number: int) -> dict[str, Any] | str:
    inputs = {name: np.array(array, order="C") for name, array in subject.inputs(number).items()}
    meant = subject.meant(number)
    for name, array in inputs.items():
        assert context.set_input_shape(name, array.shape), f"{subject.name}: {name!r} cannot be {array.shape}"
        assert context.set_tensor_address(name, array.ctypes.data or 1)
    if isinstance(meant, str):
        assert not context.execute_async_v3(0), f"{subject.name}, inputs {number}: there is no error"
        return meant
    buffers = {name: np.full(array.nbytes + GUARD, 0xA5, np.uint8) for name, array in meant.items()}
    for name, buffer in buffers.items():
        assert context.set_tensor_address(name, buffer.ctypes.data)
    assert context.execute_async_v3(0), f"{subject.name}, inputs {number}: the context failed"
    assert all((buffer[-GUARD:] == 0xA5).all() for buffer in buffers.values()), "a context wrote past an output"
    return {name: buffers[name][:-GUARD].view(array.dtype).reshape(array.shape) for name, array in meant.items()}


def reshape(chance: Random) -> Work:
    """Run a context with shapes in and outside of its profile."""
    builder = trt.Builder(NoLog())
    engine = builder.build_engine_with_config(doubling_network(builder), config_with_profile(builder))
    assert engine is not None
    context = engine.create_execution_context()
    while True:
        rows = chance.randrange(7)
        x = drawn(rows, rows, 3)
        y = np.zeros_like(x)
        assert context.set_input_shape("x", x.shape) == (1 <= rows <= 4)
        if 1 <= rows <= 4:
            assert context.set_tensor_address("x", x.ctypes.data)
            assert context.set_tensor_address("y", y.ctypes.data)
            assert context.execute_async_v3(0)
            np.testing.assert_array_equal(y, x + x)
        yield


def reload(shared: Shared, chance: Random) -> Work:
    """Serialize shared engines, and call what is deserialized."""
    runtime = trt.Runtime(NoLog())
    while True:
        subject, engine = chance.choice(shared)
        loaded = runtime.deserialize_cuda_engine(engine.serialize())
        assert loaded is not None
        subject.check(chance.randrange(MOST_INPUTS), loaded)
        yield


def compile_networks(chance: Random) -> Work:
    """Compile random networks, call the engines once, and drop them."""
    grown = [Grower(Random(seed), 2, 25).grow() for seed in range(MOST_NETWORKS)]
    valid = [other for other in grown if not any(found.code == "NL211" for found in trt.check(other.network))]
    meant = [trt.evaluate(grown.network, grown.inputs) for grown in valid]
    while True:
        for other, outputs in chance.sample(list(zip(valid, meant, strict=True)), len(valid)):
            assert_equal(trt.compile(other.network)(other.inputs), outputs, other.rough)
            yield


# ---------------------------------------------------------------------------- refits

SIZE = 2048
"""Weights of which so many are needed that what follows from them alone is computed at load time."""
WEIGHTS = F(2), F(3)
"""All weights of an engine are one of these numbers, and a refit changes it."""


class Refitted:
    """An engine whose weights all are one number, which changes while others call it.

    Attributes:
        engine: the engine.
        inputs: makes the inputs of a number.
        outputs: the outputs for some inputs and weights.
    """

    def __init__(
        self, network: trt.INetworkDefinition, inputs: Callable[[int], Inputs], outputs: Callable[[Any, Any], Any]
    ) -> None:
        self.engine = trt.compile(network)
        self.inputs = inputs
        self.outputs = outputs

    def check(self, number: int) -> None:
        """Call the engine; its outputs are those of the old weights or those of the new."""
        given = self.inputs(number)
        got = {name: np.asarray(value) for name, value in self.engine(given).items()}
        meant = [self.outputs(given["x"], weight) for weight in WEIGHTS]
        assert any(all(np.array_equal(got[name], value[name]) for name in value) for value in meant), (
            f"{got} for {given} follows neither from the old weights nor from the new"
        )


def of_constants() -> Refitted:
    """y: x w + w; z: the dot product of two weights, which is computed at load time."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (-1, SIZE))
    factor, shift = (constant(network, np.full((1, SIZE), WEIGHTS[0])) for _ in range(2))
    y = combine(network, combine(network, x, factor, trt.ElementWiseOperation.PROD), shift)
    dot = combine(network, factor, shift, trt.ElementWiseOperation.PROD)
    z = network.add_reduce(dot, trt.ReduceOperation.SUM, 0b10, False).get_output(0)
    return Refitted(
        mark(network, y=y, z=z),
        lambda number: {"x": drawn(number, 1 + number % 5, SIZE)},
        lambda x, w: {"y": x * w + w, "z": np.array([SIZE * w * w], F)},
    )


def of_a_convolution() -> Refitted:
    """y: the sums of two neighbours in x, times w, plus w; kernel and bias are attributes of the layer."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (-1, 1, 1, -1))
    layer = network.add_convolution_nd(x, 1, (1, 2), np.full(2, WEIGHTS[0]), np.full(1, WEIGHTS[0]))
    layer.name = "window"
    return Refitted(
        mark(network, y=layer.get_output(0)),
        lambda number: {"x": drawn(number, 1 + number % 3, 1, 1, 2 + number % 11)},
        lambda x, w: {"y": (x[..., 1:] + x[..., :-1]) * w + w},
    )


def call_refitted(refitted: list[Refitted], chance: Random) -> Work:
    """Call engines while another thread refits them."""
    while True:
        chance.choice(refitted).check(chance.randrange(MOST_INPUTS))
        yield


def refit(refitted: list[Refitted], chance: Random) -> Work:
    """Change the weights of engines, in the only thread that does."""
    refitters = [trt.Refitter(other.engine, NoLog()) for other in refitted]
    while True:
        refitter, weight = chance.choice(refitters), chance.choice(WEIGHTS)
        layers, roles = refitter.get_all()
        for layer, role in zip(layers, roles, strict=True):
            size = {trt.WeightsRole.CONSTANT: SIZE, trt.WeightsRole.KERNEL: 2, trt.WeightsRole.BIAS: 1}[role]
            assert refitter.set_weights(layer, role, np.full(size, weight))
        assert refitter.refit_cuda_engine()
        yield


# ---------------------------------------------------------------------------- threads


class Worker(threading.Thread):
    """A thread that repeats its work until it is stopped or fails.

    Attributes:
        done: how often it has done it.
        error: what ended it; None if nothing did.
    """

    def __init__(self, name: str, work: Work, stop: threading.Event) -> None:
        super().__init__(name=name, daemon=True)
        self.done = 0
        self.error: BaseException | None = None
        self._work = work
        self._stopped = stop

    def run(self) -> None:
        """Work."""
        try:
            while not self._stopped.is_set():
                next(self._work)
                self.done += 1
                self._stopped.wait(PAUSE)
        except BaseException as error:
            self.error = error
            self._stopped.set()
