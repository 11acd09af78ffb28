"""Positions that are inside of an axis in every run; what imported models make of rows is with the importers."""

import numpy as np
import pytest

import netloop as trt
from netloop.model.formulas import FormulaBuilder


@pytest.mark.parametrize(
    ("bound", "length"),
    [(4, 1), (3, 1), (0, 1), (5, -1), (-1, -1)],
    ids=["whole axis", "part of it", "no iteration", "past its end", "any number"],
)
def test_row_at_the_number_of_an_iteration_is_there_if_the_trip_count_says_so(network, bound, length):
    make = FormulaBuilder(network)
    x = network.add_input("x", trt.float32, (4, 2))
    number = make.counter(network.add_loop()).outputs[0]
    make.bounds[number] = make.constant(np.int64(bound))
    row = make.slice_between(x, make.flat(number), make.flat(make.add(number, 1)))

    assert row.type.shape == (length, 2)
