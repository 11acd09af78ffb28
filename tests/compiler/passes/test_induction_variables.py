"""Gathers and scatters at a counter become iterators and stacked outputs."""

import numpy as np
import pytest

import netloop as trt
from netloop.values import types
from tests.support.cells import by_number, written
from tests.support.networks import constant, counted, counter, mark, stacked
from tests.support.pass_checks import count, improved

pytestmark = pytest.mark.usefixtures("low_thresholds")


@pytest.mark.parametrize("trips", [3, 4])
def test_gather_at_a_counter_is_an_iterator_if_it_stays_inside_the_axis(trips):
    network = by_number(trips=trips)
    indexed = improved(network, ["induction_variables"])

    # the second gather reads one row further on
    assert count(indexed.network, trt.IGatherLayer) == trips - 3
    assert count(indexed.network, trt.IIteratorLayer) == 5 - trips


@pytest.mark.parametrize("dtype", [trt.fp8, trt.float32, trt.int32], ids=str)
def test_counter_may_start_at_a_later_row_of_a_small_constant(dtype):
    network = trt.INetworkDefinition()
    loop = counted(network, 2)
    rows = constant(network, np.arange(6).reshape(3, 2), types.NUMPY_TYPES[dtype])
    read = network.add_gather(rows, counter(network, loop, 1), 0).get_output(0)
    mark(network, y=stacked(loop, read, constant(network, 2, np.int32)))

    assert count(improved(network, ["induction_variables"]).network, trt.IGatherLayer) == 0
    assert trt.compile(network)({})["y"].astype(int).tolist() == [[2, 3], [4, 5]]


@pytest.mark.parametrize(
    ("named", "states"), [({}, 1), ({"rows": 4}, 3), ({"start": -1}, 3), ({"reads": True}, 3)], ids=str
)
def test_state_whose_rows_are_written_at_a_counter_is_stacked(named, states):
    assert count(improved(written(**named), ["induction_variables"]).network, trt.IRecurrenceLayer) == states
