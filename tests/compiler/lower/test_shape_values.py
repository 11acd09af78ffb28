"""Tensors that decide shapes by their values: before a network runs, and while it runs."""

import numpy as np
import pytest

import netloop as trt
from netloop.compiler.lower.shape_values import valued_before_run, valued_in_run
from netloop.values.types import LARGEST_KNOWN_VALUE
from tests.support.networks import Op, combine, constant, mark
from tests.support.speech import frames_of, rounded_up, total_of

LARGE = LARGEST_KNOWN_VALUE // 4 + 1
"""The number of float32 numbers that are too many for their values to be known."""


@pytest.fixture
def text(network):
    return network.add_input("text", trt.int64, (3,))


def total_by(network, text, rows):
    return total_of(network, constant(network, np.arange(rows) % 4, np.float32), text)


def test_input_decides_through_small_weights(network, text):
    mark(network, y=frames_of(network, rounded_up(network, total_by(network, text, 4))))

    assert text in valued_before_run(network)


def test_input_does_not_decide_through_large_weights(network, text):
    mark(network, y=frames_of(network, rounded_up(network, total_by(network, text, LARGE))))

    assert text not in valued_before_run(network)


def test_input_decides_by_the_branch_without_large_weights(network, text):
    choice = network.add_if_conditional()
    first = network.add_gather(text, constant(network, 0, np.int64), 0).get_output(0)
    choice.set_condition(combine(network, first, constant(network, 0, np.int64), Op.GREATER))
    far = rounded_up(network, total_by(network, text, LARGE))
    mark(network, y=frames_of(network, choice.add_output(first, far).get_output(0)))

    assert text in valued_before_run(network)


def test_input_of_unknown_length_decides(network):
    text = network.add_input("text", trt.float32, (-1,))
    total = network.add_reduce(text, trt.ReduceOperation.SUM, 1, False).get_output(0)
    mark(network, y=frames_of(network, rounded_up(network, total)))

    assert text in valued_before_run(network)


def test_length_decides_in_the_run_and_the_number_that_is_rounded_to_it_does_not(network, text):
    total = total_by(network, text, LARGE)
    length = rounded_up(network, total)
    mark(network, y=frames_of(network, length))

    assert length in valued_in_run(network)
    assert total not in valued_in_run(network)
