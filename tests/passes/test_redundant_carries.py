"""Constant and equal recurrences are not carried."""

import pytest

import netloop as trt
from tests.support.cells import by_number, kept
from tests.support.nests import shift_register
from tests.support.pass_checks import count, improved

pytestmark = pytest.mark.usefixtures("low_thresholds")


def test_constant_and_equal_states_are_not_carried():
    network = kept()
    merged = improved(network, ["redundant_carries"])

    assert [count(each, trt.IRecurrenceLayer) for each in (network, merged.network)] == [4, 2]


def test_counters_with_the_same_start_are_one():
    network = by_number()

    assert count(improved(network, ["redundant_carries"]).network, trt.IRecurrenceLayer) == 2


def test_long_shift_register_is_left_alone():
    network = shift_register(2000)

    assert count(improved(network, ["redundant_carries"]).network, trt.IRecurrenceLayer) == 2000
