"""Lengths of streams that are known only in a request."""

import numpy as np

import netloop as trt
from netloop.compiler.execution.stream_lengths import free_lengths
from tests.support.networks import (
    REVERSE,
    combine,
    count_is_an_input,
    counted,
    counter,
    length_is_an_input,
    mark,
    stacked,
)


def test_a_length_that_is_an_input_becomes_an_output():
    network = length_is_an_input()

    found = free_lengths(network, 0)

    assert found == {"y": "length 0"}
    assert [tensor.name for tensor in network.outputs] == ["y", "length 0"]
    assert not network.shape_tensors().intersection(network.inputs)


def test_a_constant_length_stays():
    network = count_is_an_input()

    assert free_lengths(network, 0) == {}
    assert len(network.outputs) == 2


def test_a_length_of_rows_that_are_read_stays():
    network = trt.INetworkDefinition()
    n = network.add_input("n", trt.int32, ())
    loop = counted(network, n)
    rows = stacked(loop, counter(network, loop), n)
    mark(network, y=rows, z=combine(network, rows, rows))

    assert free_lengths(network, 0) == {}


def test_outputs_of_one_length_share_it_and_its_name_is_free():
    network = trt.INetworkDefinition()
    n = network.add_input("length 0", trt.int32, ())
    loop = counted(network, n)
    now = counter(network, loop)
    mark(network, y=stacked(loop, now, n), z=stacked(loop, now, n, REVERSE))

    assert free_lengths(network, 0) == {"y": "length 1", "z": "length 1"}


def test_a_length_of_its_own_pads_and_reverses_as_alone():
    network = trt.INetworkDefinition()
    n, length = network.add_input("n", trt.int32, ()), network.add_input("length", trt.int64, ())
    loop = counted(network, n)
    row = network.add_slice(network.add_input("x", trt.float32, (3,)), (0,), (3,), (1,)).get_output(0)
    mark(
        network,
        y=stacked(loop, combine(network, row, row), length, REVERSE, 1),
        z=stacked(loop, counter(network, loop), length, REVERSE),
    )
    engine, alone = trt.SlotEngine(network, slots=2), trt.compile(network)
    inputs = [
        {"n": np.int32(n), "length": np.int64(m), "x": np.float32([1, 2, 3])} for n, m in ((2, 4), (3, 3), (0, 2))
    ]

    for given in inputs:
        found = engine.submit(given).result()
        for name, array in alone(given).items():
            np.testing.assert_array_equal(found[name], array)
    assert engine.program_count == 1
