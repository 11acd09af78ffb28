"""What the soak runs: networks with numbered inputs, and the outputs or the error that the reference gives for each."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import netloop as trt
from tests.support import networks
from tests.support.networks import Op, combine, constant, counted, last, mark, run

F = np.float32
Inputs = dict[str, Any]


def _in_plans(outcome: Any) -> Any:
    """An outcome; of a message without the callers of the user's line, which plans do not have."""
    if not isinstance(outcome, str):
        return outcome
    return [line for line in outcome.splitlines() if "called from" not in line]


class Subject:
    """A network with numbered inputs.

    Attributes:
        name: its name, for messages.
        network: the network.
        inputs: makes the inputs of a number.
        tolerance: the largest difference from the reference, relative and absolute.
    """

    def __init__(
        self, name: str, network: trt.INetworkDefinition, inputs: Callable[[int], Inputs], tolerance: float = 0
    ) -> None:
        self.name = name
        self.network = network
        self.inputs = inputs
        self.tolerance = tolerance
        self.meant = cache(self._meant)

    def _meant(self, number: int) -> dict[str, np.ndarray] | str:
        """The outputs of the reference, or its message."""
        try:
            return run("reference", self.network, self.inputs(number))
        except trt.ExecutionError as error:
            return str(error)

    def check(self, number: int, call: Callable[[Inputs], dict[str, Any]]) -> None:
        """Call an engine, and compare its outputs or its message."""
        try:
            got: dict[str, Any] | str = call(self.inputs(number))
        except trt.ExecutionError as error:
            got = str(error)
        self.compare(number, got)

    def compare(self, number: int, got: dict[str, Any] | str) -> None:
        """Compare outputs, or a message, with those of the reference."""
        meant = self.meant(number)
        at = f"{self.name}, inputs {number}"
        if isinstance(meant, str) or isinstance(got, str):
            assert _in_plans(got) == _in_plans(meant), f"{at}: {got}, not {meant}"
            return
        assert list(got) == list(meant), at
        for name, array in meant.items():
            same = np.asarray(got[name])
            assert (same.dtype, same.shape) == (array.dtype, array.shape), f"{at}: {name!r}"
            np.testing.assert_allclose(same, array, self.tolerance, self.tolerance, err_msg=f"{at}: {name!r}")


def drawn(number: int, *shape: int) -> np.ndarray:
    """Small whole numbers that follow from a number."""
    return np.random.default_rng(number).integers(-4, 5, shape).astype(F)


def _lstm_inputs(number: int) -> Inputs:
    batch, steps = 1 + number % 3, number % 7
    states = {name: drawn(number, batch, 5) / 8 for name in ("h0", "c0")}
    return {"x": drawn(number, batch, steps, 7) / 8, **states}


def found_and_stacked() -> trt.INetworkDefinition:
    """places: the indices of the numbers of x[n] other than 0; y: sums of x, and zeros, twice as many. For the host."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (-1,))
    places = network.add_non_zero(x).get_output(0)
    shape = network.add_shape(places).get_output(0)
    count = network.add_gather(shape, constant(network, 1, np.int32), 0).get_output(0)
    loop = counted(network, count)
    total = loop.add_recurrence(constant(network, 0, F))
    total.set_input(1, combine(network, total.get_output(0), loop.add_iterator(x).get_output(0)))
    length = combine(network, count, 2, Op.PROD)
    return mark(network, places=places, y=networks.stacked(loop, total.get_output(0), length))


def long_loop() -> trt.INetworkDefinition:
    """y: x after 12,000 steps of y = 3 - y; long enough for chunks."""
    network = trt.INetworkDefinition()
    loop = counted(network, 12_000)
    state = loop.add_recurrence(network.add_input("x", trt.float32, (-1,)))
    state.set_input(1, combine(network, combine(network, state.get_output(0), -1.0, Op.PROD), 3.0))
    return mark(network, y=last(loop, state.get_output(0)))


def subjects() -> list[Subject]:
    """Networks with shapes, trip counts and values that change, and with errors that come and go."""

    def whole(name: str, most: int, dtype: Any = np.int32) -> Callable[[int], Inputs]:
        return lambda number: {name: dtype(number % most)}

    return [
        Subject("running sums", networks.dynamic_axis(), lambda number: {"x": drawn(number, number % 13, 2)}),
        Subject("lstm", networks.lstm(), _lstm_inputs, 1e-5),
        Subject("a COUNT that may be too large for an output", networks.count_is_an_input(), whole("n", 11)),
        Subject("a length that is an input", networks.length_is_an_input(), whole("n", 9)),
        Subject("two limits", networks.both_limits(), whole("n", 9)),
        Subject("a conditional in a loop", networks.conditional_in_loop(), whole("x", 40)),
        Subject("nested loops", networks.nested(), whole("n", 9)),
        Subject("an assertion that may fail", networks.asserted(), whole("n", 7)),
        Subject("data-dependent shapes", found_and_stacked(), lambda number: {"x": drawn(number, number % 9)}),
    ]


def long_subject() -> Subject:
    """A loop of many iterations, which an interruptible engine runs in chunks."""
    return Subject("a long loop", long_loop(), lambda number: {"x": drawn(number, 1 + number % 3)})
