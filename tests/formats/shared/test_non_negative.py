"""Integers that are known to be 0 or more."""

import numpy as np

import netloop as trt
from netloop.formats.shared.non_negative import DEEPEST, is_non_negative
from tests.support.networks import Op, combine, constant


def test_lengths_and_maxima_are_known_not_to_be_negative():
    network = trt.INetworkDefinition()
    x, n = network.add_input("x", trt.float32, (-1, -1)), network.add_input("n", trt.int64, ())
    length = network.add_gather(network.add_shape(x).get_output(0), constant(network, 1, np.int64), 0).get_output(0)
    flag = network.add_input("flag", trt.bool, ())
    most = combine(network, n, 0, Op.MAX)
    short = network.add_input("short", trt.int32, ())
    wide, narrow, whole, short_length = (
        network.add_cast(tensor, dtype).get_output(0)
        for tensor, dtype in (
            (combine(network, short, np.int32(0), Op.MAX), trt.int64),
            (most, trt.int32),
            (short, trt.int64),
            (length, trt.int32),
        )
    )
    numbers = {
        length: True, n: False, most: True, combine(network, n, length, Op.MIN): False,
        combine(network, most, length, Op.MIN): True, network.add_select(flag, most, length).get_output(0): True,
        network.add_select(flag, most, n).get_output(0): False, combine(network, length, length, Op.SUM): False,
        wide: True, narrow: False, whole: False, short_length: True,
    }  # fmt: skip

    assert [is_non_negative(tensor, network.types) for tensor in numbers] == list(numbers.values())
    for _ in range(DEEPEST):
        most = combine(network, n, most, Op.MAX)
    assert not is_non_negative(most, network.types)
