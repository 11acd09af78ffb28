"""Engines are compared in turns, in rounds that differ in the places of their memory."""

import numpy as np
import pytest

import netloop as trt
from netloop.compiler.tuning import Stopwatch, TimedPair
from netloop.compiler.tuning.measurement import HOPELESS, PAIRS, ROUNDS
from tests.support.cells import lstm
from tests.support.pass_checks import assert_close, inputs_of


def test_gain_within_the_spread_is_no_gain():
    # faster by half in most rounds, but not in two of seven
    assert not TimedPair(1.0, 2.0, [0.5] * 5 + [1.2, 1.3]).is_faster
    assert TimedPair(1.0, 2.0, [0.5] * 6 + [1.2]).is_faster


def test_small_gain_is_no_gain():
    assert not TimedPair(0.98, 1.0, [0.98] * 7).is_faster


def test_ratio_of_a_round_is_that_of_the_shortest_times():
    found = TimedPair.of([[1.0, 9.0], [2.0, 2.0]], [[2.0, 2.0], [8.0, 4.0]])

    assert found.ratios == [0.5, 0.5]
    assert (found.seconds, found.before) == (2.0, 3.0)


class Fake:
    """Stands for an engine whose calls take some seconds of a clock."""

    def __init__(self, log, name, seconds):
        self.log = log
        self.name = name
        self.seconds = seconds
        self.given = []

    def move_weights(self):
        self.log.append((self.name, "moved"))

    def run_to_end(self, given):
        self.log.append((self.name, "called"))
        self.given.append(given["x"])
        self.log.now += self.seconds


class Calls(list):
    """What happened, and the time."""

    now = 0.0


def compared(candidate, incumbent, **settings):
    log = Calls()
    engines = [Fake(log, "candidate", candidate), Fake(log, "incumbent", incumbent)]
    found = Stopwatch({"x": np.ones(3, np.float32)}, clock=lambda: log.now, **settings)(*engines)
    return found, log, engines


def test_engines_take_turns_and_each_is_first_as_often():
    _, log, _ = compared(0.01, 0.02)
    calls = [name for name, what in log if what == "called"]
    # a call after the weights are moved and one that decides the number of calls come before the samples
    samples = calls[4 : 4 + 2 * PAIRS]

    assert samples[:4] in (["incumbent", "candidate", "candidate", "incumbent"],
                           ["candidate", "incumbent", "incumbent", "candidate"])  # fmt: skip


def test_weights_and_inputs_move_in_each_round():
    _, log, engines = compared(0.01, 0.02)

    assert log.count(("candidate", "moved")) == log.count(("incumbent", "moved")) == ROUNDS
    assert len({id(value) for value in engines[0].given}) == ROUNDS


def test_times_are_those_of_calls():
    found, _, _ = compared(0.01, 0.02)

    assert (found.seconds, found.before) == pytest.approx((0.01, 0.02))
    assert found.ratios == pytest.approx([0.5] * ROUNDS)


def test_short_calls_are_repeated_in_a_sample():
    _, log, _ = compared(2**-13, 2**-13, calls=2)
    each_round = log[: len(log) // ROUNDS]

    assert each_round.count(("candidate", "called")) == 2 + PAIRS * 2 * 9


def test_long_calls_have_one_sample_in_a_round():
    _, log, _ = compared(5.0, 10.0)

    assert log.count(("candidate", "called")) == 3 * ROUNDS


def test_candidate_that_is_slower_in_each_of_the_first_rounds_is_left():
    found, log, _ = compared(0.02, 0.01)

    assert log.count(("candidate", "moved")) == HOPELESS
    assert not found.is_faster


def test_engine_computes_the_same_after_its_weights_have_moved():
    engine = trt.compile(network := lstm()).executable
    inputs = inputs_of(network)
    before = engine(inputs)
    before_weights = engine.weights
    engine.move_weights()

    assert engine.weights is not before_weights
    assert_close(engine(inputs), {name: np.asarray(value) for name, value in before.items()})
