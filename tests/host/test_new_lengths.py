"""Lengths that only a run knows: what is compiled for new ones."""

import numpy as np

import netloop as trt
from netloop.types import LARGEST_KNOWN_VALUE
from tests.support.networks import constant, mark
from tests.support.speech import frames_of, rounded_up, total_of

TABLE = np.arange(LARGEST_KNOWN_VALUE, dtype=np.float32) / 2
"""Half a frame for the letter 1, a frame for the letter 2."""


def frames(network):
    """Frames of three letters."""
    text = network.add_input("text", trt.int64, (3,))
    return frames_of(network, rounded_up(network, total_of(network, constant(network, TABLE), text)))


def square_of(network, x):
    """The product of a vector with itself."""
    vector = trt.MatrixOperation.VECTOR
    return network.add_matrix_multiply(x, vector, x, vector).get_output(0)


def test_text_of_a_known_length_compiles_nothing(network, compiled):
    mark(network, y=square_of(network, frames(network)))
    engine = trt.compile(network)

    assert engine({"text": np.array([2, 4, 6])})["y"] == sum(each**2 for each in range(6))
    assert len(compiled) > 0
    del compiled[:]
    assert engine({"text": np.array([1, 3, 7])})["y"] == sum(each**2 for each in range(6))
    assert compiled == []
    assert engine.program_count == 1
    assert engine({"text": np.array([2, 4, 7])})["y"] == sum(each**2 for each in range(7))
