"""Random loops against loops in numpy; OpenVINO's own CPU plugin fails many of them."""

import random

import numpy as np
import pytest

import netloop
from tests.support.openvino_models import F, Loop, network_of, ops, parameter

LENGTH = 4


def formulas(chance, count):
    """The next value of each state: a formula of the slice and the states, for layers or for arrays."""

    def formula():
        kind, a, b = chance.randrange(6), chance.randrange(count), chance.randrange(count)
        return [
            lambda make, part, states: states[a],
            lambda make, part, states: part,
            lambda make, part, states: make.add(part, states[a]),
            lambda make, part, states: make.add(states[a], states[b]),
            lambda make, part, states: make.tanh(make.subtract(part, states[b])),
            lambda make, part, states: make.multiply(states[a], make.tanh(part)),
        ][kind]

    return [formula() for _ in range(count)]


class Arrays:
    """The operators, by numpy's names."""

    add, subtract, multiply, tanh = np.add, np.subtract, np.multiply, np.tanh


@pytest.mark.parametrize("seed", range(24))
def test_random_loop_gives_what_numpy_gives(seed):
    chance = random.Random(seed)
    count, backwards, counted = chance.randint(1, 3), chance.random() < 0.5, chance.random() < 0.5
    trips = chance.randint(0, LENGTH) if counted else LENGTH
    nexts = formulas(chance, count)
    x = parameter("x", [LENGTH, 2])
    starts = [parameter(f"s{index}", [1, 2]) for index in range(count)]
    loop = Loop(trips if counted else None)
    part = loop.sliced(x, [1, 2], 0, *((-1, -1, 1, 0) if backwards else (0, 1, 1, -1)))
    states = [loop.state(start) for start in starts]
    after = [next_(ops, part, states) for next_ in nexts]
    outputs = loop.outputs(list(zip(states, after, strict=True)), after, [(value, 0) for value in after])
    network = network_of(outputs, [x, *starts])

    numbers = np.random.default_rng(seed)
    rows = F(numbers.normal(size=(LENGTH, 2)))
    now = [F(numbers.normal(size=(1, 2))) for _ in starts]
    inputs = {"x": rows, **{f"s{number}": other for number, other in enumerate(now)}}
    history = []
    for step in range(trips):
        row = rows[::-1][step : step + 1] if backwards else rows[step : step + 1]
        now = [next_(Arrays, row, now) for next_ in nexts]
        history.append(now)
    joined = [np.concatenate([np.zeros((0, 2), F), *entry]) for entry in zip(*history, strict=True)]
    expected = [*now, *(joined or [np.zeros((0, 2), F)] * count)]
    found = (netloop.compile(network) if seed < 4 else lambda given: netloop.evaluate(network, given))(inputs)
    for made, wanted in zip(found.values(), expected, strict=True):
        np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=1e-6)
