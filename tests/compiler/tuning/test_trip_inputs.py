"""Inputs that decide how often loops run get numbers with which they run, and which are valid."""

import numpy as np
import pytest

import netloop as trt
from netloop.compiler.tuning.trip_inputs import TRIPS, inputs_behind, trip_inputs
from tests.support.networks import cast, combine, constant, counted, counter, last, mark, stacked

Op = trt.ElementWiseOperation
WHILE = trt.TripLimit.WHILE


def numbers(network):
    """The numbers for the inputs, by name; -1 for an array of different ones."""
    found = trip_inputs(network, {tensor: tuple(tensor.shape) for tensor in network.inputs if tensor.type.is_tensor})
    return {
        tensor.name: array.flat[0].item() if (array == array.flat[0]).all() else -1 for tensor, array in found.items()
    }


def counting(network, count):
    """A loop of ``count`` iterations that adds them up."""
    loop = counted(network, count)
    return mark(network, y=last(loop, counter(network, loop)))


COUNTS = {
    "itself": (trt.int64, (), lambda network, n: n),
    "one more": (trt.int64, (), lambda network, n: combine(network, n, 1)),
    "a multiple": (trt.int32, (), lambda network, n: combine(network, n, 3, Op.PROD)),
    "its square": (trt.int32, (), lambda network, n: combine(network, n, n, Op.PROD)),
    "another type": (trt.int32, (), lambda network, n: cast(network, n, trt.int64)),
    "a short type": (trt.int8, (), lambda network, n: cast(network, n, trt.int64)),
    "a float": (trt.float32, (), lambda network, n: cast(network, n, trt.int64)),
    "the larger one": (trt.int64, (), lambda network, n: combine(network, n, 2, Op.MAX)),
    "an element": (trt.int64, (1,),
                   lambda network, n: network.add_squeeze(n, constant(network, np.int64([0]))).get_output(0)),
    "the largest": (trt.int64, (3,),
                    lambda network, n: network.add_reduce(n, trt.ReduceOperation.MAX, 1, False).get_output(0)),
    "a gathered one": (trt.int64, (3,),
                       lambda network, n: network.add_gather(n, constant(network, 1, np.int64), 0).get_output(0)),
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTS)
def test_count_that_is_computed_of_an_input_is_at_least_two(network, name):
    dtype, shape, count = COUNTS[name]
    x = network.add_input("n", dtype, shape)
    (number,) = numbers(counting(network, count(network, x))).values()

    assert 2 <= number <= TRIPS
    assert trt.evaluate(network, {"n": np.full(shape, number, x.type.dtype)}, max_trips=1000)["y"] >= 2


def test_count_that_is_far_less_than_an_input_is_not_zero(network):
    n = network.add_input("n", trt.int64, ())

    assert numbers(counting(network, combine(network, n, 100, Op.SUB))) == {"n": 128}


def test_count_of_two_inputs(network):
    n, m = (network.add_input(name, trt.int64, ()) for name in "nm")

    assert numbers(counting(network, combine(network, n, m, Op.PROD))) == {"n": 64, "m": 8}


def test_count_is_no_more_than_the_elements_that_are_read(network):
    loop = counted(network, network.add_input("n", trt.int64, ()))
    x = loop.add_iterator(network.add_input("x", trt.float32, (5,))).get_output(0)
    mark(network, y=last(loop, x))

    assert numbers(network) == {"n": 4}


def test_count_is_no_more_than_the_rows_that_are_written(network):
    loop = counted(network, network.add_input("n", trt.int64, ()))
    mark(network, y=stacked(loop, counter(network, loop), constant(network, 3, np.int32)))

    assert numbers(network) == {"n": 2}


def test_count_is_a_valid_index_where_it_is_one(network):
    n = network.add_input("n", trt.int64, ())
    table = constant(network, np.arange(20, dtype=np.float32))
    mark(network, row=network.add_gather(table, combine(network, n, 1), 0).get_output(0))

    assert numbers(counting(network, n)) == {"n": 16}


def test_length_of_an_output_that_is_the_count_follows_it(network):
    n = network.add_input("n", trt.int64, ())
    loop = counted(network, n)
    mark(network, y=stacked(loop, counter(network, loop), n))

    assert numbers(network) == {"n": TRIPS}


def test_integers_and_bools_of_a_while_limit_let_it_begin(network):
    limit, goes_on = network.add_input("limit", trt.int64, ()), network.add_input("goes_on", trt.bool, ())
    below, x = network.add_input("below", trt.float32, ()), network.add_input("x", trt.int32, ())
    loop = network.add_loop()
    number, first = loop.add_recurrence(constant(network, 0, np.int64)), loop.add_recurrence(goes_on)
    number.set_input(1, combine(network, number.get_output(0), 1))
    first.set_input(1, combine(network, cast(network, number.get_output(0), trt.float32), below, Op.GREATER))
    is_below = combine(network, number.get_output(0), limit, Op.LESS)
    loop.add_trip_limit(combine(network, is_below, first.get_output(0), Op.AND), WHILE)
    mark(network, y=combine(network, last(loop, number.get_output(0)), cast(network, x, trt.int64)))

    assert numbers(network) == {"limit": TRIPS, "goes_on": True}


def test_network_without_such_inputs_has_none(network):
    x = network.add_input("x", trt.int64, (3,))
    mark(network, z=combine(network, x, x))

    assert numbers(counting(network, 5)) == {}


def test_lengths_and_positions_are_not_numbers_of_iterations(network):
    data, position = network.add_input("data", trt.int64, (3,)), network.add_input("position", trt.int64, ())
    taken = network.add_gather(data, position, 0).get_output(0)

    assert {tensor.name for tensor in inputs_behind(taken)} == {"data"}
    assert inputs_behind(network.add_shape(data).get_output(0)) == set()


def test_count_that_is_no_input_does_not_matter_beside_a_while_limit(network):
    """ONNX's loops have both limits, and the first is often the largest integer."""
    limit = network.add_input("limit", trt.int64, ())
    loop = counted(network, constant(network, 2**63 - 1, np.int64))
    number = loop.add_recurrence(constant(network, 0, np.int64))
    number.set_input(1, combine(network, number.get_output(0), 1))
    loop.add_trip_limit(combine(network, number.get_output(0), limit, Op.LESS), WHILE)
    mark(network, y=last(loop, number.get_output(0)))

    assert numbers(network) == {"limit": TRIPS}


def test_number_is_one_of_a_short_type(network):
    n = network.add_input("n", trt.int8, ())

    assert 1 <= numbers(counting(network, combine(network, cast(network, n, trt.int64), 1000, Op.SUB)))["n"] <= 127


def test_float_of_eight_bits_in_a_while_limit_is_no_number_of_iterations(network):
    x = network.add_input("x", trt.fp8, ())
    loop = network.add_loop()
    number = loop.add_recurrence(constant(network, 0, np.float32))
    number.set_input(1, combine(network, number.get_output(0), constant(network, 1, np.float32)))
    wide = network.add_dequantize(x, constant(network, 1, np.float32), trt.float32).get_output(0)
    loop.add_trip_limit(combine(network, number.get_output(0), wide, Op.LESS), WHILE)
    mark(network, y=last(loop, number.get_output(0)))

    assert numbers(network) == {}
