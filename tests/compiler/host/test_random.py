"""Random networks of lengths that only a run knows, in engines whose padding is poison."""

import numpy as np
import pytest

import netloop as trt
from netloop.compiler.host import padded_pieces, program
from tests.support.examples import many
from tests.support.unknown_lengths import OnlyChosen, network_of_unknown_lengths, poisoned

FEW = 2
"""The numbers of networks."""


def agree(number, calls=8):
    saved = network_of_unknown_lengths(number)
    engine = trt.compile(saved.network)
    for inputs in saved.calls[:calls]:
        got, meant = engine(inputs), trt.evaluate(saved.network, inputs)
        for name, value in meant.items():
            np.testing.assert_array_equal(np.asarray(got[name]), value, f"{name} of {saved}", strict=True)


@pytest.fixture
def poison(monkeypatch):
    monkeypatch.setattr(padded_pieces, "_longer", poisoned)


@pytest.fixture
def all_in_programs(monkeypatch, poison):
    monkeypatch.setattr(program, "NumpyLayers", OnlyChosen)


@pytest.mark.parametrize("number", range(FEW))
def test_random_lengths_agree_with_the_reference(number, all_in_programs):
    agree(number, calls=3)


@pytest.mark.slow
@pytest.mark.parametrize("number", many(50))
def test_many_random_lengths_agree_with_the_reference(number, all_in_programs):
    agree(number)


@pytest.mark.slow
@pytest.mark.parametrize("number", many(20, 400))
def test_random_lengths_agree_with_the_reference_where_numpy_computes_small_layers(number, poison):
    agree(number)


def test_iteration_and_what_follows_the_last_one_may_begin_alike():
    """Both begin with one conditional and read the same tensors."""
    agree(5043, calls=5)
