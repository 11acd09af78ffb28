"""Loops and conditionals with extreme numbers, in processes that may die.

A case is a loop of a counter with a state, a slice of a tensor and an output, and the numbers of its boundary layers.
"""

import random
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

import netloop as trt
from netloop.model.graph.tensor import ITensor
from netloop.values.types import DATA_TYPES
from tests.support.extremes import INTS, is_valid
from tests.support.mortal_cases import raised, serve
from tests.support.networks import WHILE, Op, combine, constant, counted, counter, last, mark

MAX_TRIPS = 1000
NUMBERS = [2, 3, 4, 2**30, *INTS]
PLACES = ["outside", "in a branch", "in a loop", "in a loop in a branch"]
USUAL: dict[str, Any] = {
    "count": 3,
    "condition": False,
    "dtype": np.int64,
    "given": False,
    "length": 4,
    "kind": trt.LoopOutput.CONCATENATE,
    "axis": 0,
    "state": (2,),
    "sliced": None,
    "reverse": False,
    "place": "outside",
    "taken": True,
}
"""The numbers of a loop; see ``Numbers``."""

OTHERS: dict[str, list[Any]] = {
    "count": [None, *NUMBERS],
    "condition": [True],
    "dtype": [np.int32],
    "given": [True],
    "length": [None, *NUMBERS],
    "kind": list(trt.LoopOutput),
    "axis": [-2, -1, 1, 2, *INTS],
    "state": [(), (0,), (2**30,), (2**31,), (2**39,), (2**20, 0, 2**20), (1, 2, 3)],
    "sliced": [-3, -2, -1, 0, 1, *INTS],
    "reverse": [True],
    "place": PLACES,
    "taken": [False],
}


@dataclass(frozen=True)
class Numbers:
    """The numbers of a loop: those of ``USUAL``, except for some.

    They are: the COUNT limit, None for no such limit; whether a WHILE limit ends the loop after 3 iterations; the
    element type of limit and length; whether both are inputs of the call; the length of the output; its kind and axis;
    the shape of the state; the axis along which the loop reads a tensor of shape (3, 2), None for none; whether it
    reads it in reverse; where the loop is; and whether the branch around it is taken.
    """

    changed: tuple[tuple[str, Any], ...]

    def __getitem__(self, name: str) -> Any:
        return dict(self.changed).get(name, USUAL[name])

    def __str__(self) -> str:
        return ", ".join(f"{name} = {getattr(value, '__name__', value)}" for name, value in self.changed)


class LoopBuilder:
    """Builds the network of a case.

    Attributes:
        network: the network.
        inputs: the inputs of a call.
    """

    def __init__(self, case: Numbers) -> None:
        self.network = trt.INetworkDefinition()
        self.inputs: dict[str, Any] = {}
        self._case = case
        number = self._loop if "loop" not in case["place"] else self._in_a_loop
        made = self._in_a_branch(number()) if "branch" in case["place"] else number()
        mark(self.network, y=made)

    def _input(self, name: str, value: Any) -> ITensor:
        self.inputs[name] = np.asarray(value)
        return self.network.add_input(name, DATA_TYPES[self.inputs[name].dtype], self.inputs[name].shape)

    def _in_a_branch(self, number: ITensor) -> ITensor:
        choice = self.network.add_if_conditional()
        choice.set_condition(self._input("taken", np.bool_(self._case["taken"])))
        return choice.add_output(number, constant(self.network, 7, np.int32)).get_output(0)

    def _in_a_loop(self) -> ITensor:
        loop = counted(self.network, 2)
        total = loop.add_recurrence(constant(self.network, 0, np.int32))
        total.set_input(1, combine(self.network, total.get_output(0), self._loop(counter(self.network, loop))))
        return last(loop, total.get_output(0))

    def _number(self, name: str) -> ITensor:
        value = np.asarray(self._case[name]).astype(self._case["dtype"])
        return self._input(name, value) if self._case["given"] else constant(self.network, value, value.dtype)

    def _loop(self, around: ITensor | None = None) -> ITensor:
        """The largest element of the output of the loop, which reads the number of the iteration around it."""
        network, case = self.network, self._case
        loop = network.add_loop()
        if case["count"] is not None:
            loop.add_trip_limit(self._number("count"), trt.TripLimit.COUNT)
        if case["condition"]:
            loop.add_trip_limit(combine(network, counter(network, loop), 3, Op.LESS), WHILE)
        output = loop.add_loop_output(self._value(loop, around), case["kind"], case["axis"])
        if case["kind"] is not trt.LoopOutput.LAST_VALUE and case["length"] is not None:
            output.set_input(1, self._number("length"))
        made = output.get_output(0)
        axes = (1 << len(made.shape)) - 1
        return network.add_reduce(made, trt.ReduceOperation.MAX, axes, False).get_output(0) if axes else made

    def _value(self, loop: trt.ILoop, around: ITensor | None) -> ITensor:
        """A value of each iteration: the state, or a slice."""
        network, shape, axis = self.network, self._case["state"], self._case["sliced"]
        first = constant(network, np.ones((1,) * len(shape), np.int32))
        if shape:
            zeros = (0,) * len(shape)
            first = network.add_slice(first, zeros, shape, zeros).get_output(0)
        if around is not None:
            shaped = network.add_shuffle(around)
            shaped.reshape_dims = (1,) * len(shape)
            first = combine(network, first, shaped.get_output(0))
        state = loop.add_recurrence(first)
        state.set_input(1, combine(network, state.get_output(0), 1))
        if axis is None:
            return state.get_output(0)
        x = self._input("x", np.ones((3, 2), np.int32))
        return loop.add_iterator(x, axis, self._case["reverse"]).get_output(0)


def cases() -> list[Numbers]:
    """One extreme number at a time, as a constant and as an input, in all places."""
    wheres = [
        (("place", place), ("taken", taken), ("given", given))
        for place, taken, given in product(PLACES, (True, False), (True, False))
        if taken or "branch" in place
    ]
    changes = [(name, value) for name in sorted(USUAL.keys() - dict(wheres[0]).keys()) for value in OTHERS[name]]
    return [Numbers((*where, change)) for where in wheres for change in changes]


def combinations(count: int, seed: int = 0) -> list[Numbers]:
    """Random cases of two to six numbers."""
    chance = random.Random(seed)
    return [
        Numbers(
            tuple((name, chance.choice(OTHERS[name])) for name in chance.sample(list(OTHERS), chance.randint(2, 6)))
        )
        for _ in range(count)
    ]


def outcome(case: Numbers) -> str:
    """What a case leads to; "RAW" begins what it must not lead to."""
    try:
        made = LoopBuilder(case)
    except (trt.NetloopError, TypeError, ValueError):
        return "refused at once"
    network, inputs = made.network, made.inputs
    if not is_valid(network):
        return "refused"
    found = {
        "compiled": raised(lambda: trt.compile(network, max_trips=MAX_TRIPS)(inputs)),
        "interruptible": raised(lambda: trt.compile(network, max_trips=MAX_TRIPS, interruptible=True)(inputs)),
        "on the host": raised(lambda: on_the_host(network, inputs)),
        "reference": raised(lambda: trt.evaluate(network, inputs, max_trips=MAX_TRIPS)),
    }
    text = ", ".join(f"{way}: {name}" for way, name in found.items())
    return text if len(set(found.values())) == 1 else f"{text} (unequal)"


def on_the_host(network: trt.INetworkDefinition, inputs: dict[str, Any]) -> None:
    """Run an engine that shows its tensors, which takes its loops to the host."""
    engine = trt.compile(network, max_trips=MAX_TRIPS)
    engine.watch(inputs, [tensor for layer in engine.network.layers for tensor in layer.outputs], lambda *seen: None)


SOURCES = {"cases": cases, "combinations": partial(combinations, 1500), "few": partial(combinations, 5)}

if __name__ == "__main__":
    serve(SOURCES, outcome)
