"""Networks in OpenVINO whose conditions, boxes and rows are computed from constants only, in several calls."""

import numpy as np
import pytest

import netloop as trt
from tests.formats.onnx.exporter.test_loops import BELOW, below
from tests.support.networks import REVERSE, WHILE, Op, cast, combine, constant, counted, last, mark, stacked
from tests.support.openvino_runtime import export, run_calls


def check_calls(network, calls):
    """Check that each call gives what the reference gives, and twice the same."""
    twice = [inputs for inputs in calls for _ in range(2)]
    for inputs, outputs in zip(twice, run_calls(export(network), twice), strict=True):
        for name, meant in trt.evaluate(network, inputs).items():
            np.testing.assert_array_equal(outputs[name], meant, strict=True)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32])
def test_comparison_of_constants_does_not_change_them_for_the_next_call(dtype):
    network = trt.INetworkDefinition()
    loop = network.add_loop()
    one, zero = constant(network, 1, dtype), constant(network, 0, dtype)
    counter, largest = loop.add_recurrence(zero), loop.add_recurrence(one)
    now = counter.get_output(0)
    counter.set_input(1, combine(network, now, one))
    largest.set_input(1, combine(network, largest.get_output(0), now, Op.MAX))
    is_more = combine(network, largest.get_output(0), 0, Op.GREATER)
    flag = combine(network, combine(network, now, zero, Op.LESS), is_more, Op.XOR)
    loop.add_trip_limit(combine(network, flag, combine(network, now, 5, Op.LESS), Op.AND), WHILE)

    check_calls(mark(network, y=last(loop, largest.get_output(0))), [{}])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32])
@pytest.mark.parametrize("is_limited", [False, True])
def test_sum_with_a_state_that_stays_constant_does_not_change_it_for_the_next_call(dtype, is_limited):
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.DataType[np.dtype(dtype).name.upper()], ())
    n = network.add_input("n", trt.int64, ())
    loop = counted(network, n)
    if is_limited:
        count = loop.add_recurrence(constant(network, 0, np.int64))
        now = count.get_output(0)
        count.set_input(1, combine(network, now, 1))
        loop.add_trip_limit(combine(network, now, 3, Op.LESS), WHILE)
    state = loop.add_recurrence(constant(network, 1, dtype))
    state.set_input(1, state.get_output(0))
    sums = combine(network, state.get_output(0), x)
    mark(network, y=stacked(loop, sums, constant(network, 5, np.int64), REVERSE))

    check_calls(network, [{"x": np.array(3, dtype), "n": np.int64(trips)} for trips in (2, 0, 1, 5)])


@pytest.mark.parametrize("dtype", [trt.bool, trt.uint8, trt.float32])
def test_selection_of_any_type_in_a_loop(dtype):
    network = trt.INetworkDefinition()
    x, flag = network.add_input("x", dtype, (2, -1)), network.add_input("flag", trt.bool, (2, -1))
    loop = counted(network, 2)
    state = loop.add_recurrence(x)
    state.set_input(1, network.add_select(flag, x, state.get_output(0)).get_output(0))
    mark(
        network, y=last(loop, state.get_output(0)), z=cast(network, network.add_select(flag, x, x).get_output(0), dtype)
    )
    arrays = [np.resize([1, 0, 1, 1], (2, length)) for length in (3, 0, 4)]

    check_calls(network, [{"x": array.astype(x.type.dtype), "flag": array.astype(bool)[::-1]} for array in arrays])


def test_rows_of_a_constant_below_a_condition_of_constants():
    network = trt.INetworkDefinition()
    loop = counted(network, 1, np.int64)
    loop.add_trip_limit(combine(network, constant(network, 1, np.uint8), 0, Op.LESS), WHILE)
    state = loop.add_recurrence(constant(network, 1, np.uint8))
    state.set_input(1, state.get_output(0))
    rows = stacked(loop, constant(network, np.bool_([True, False])), constant(network, 5, np.int64), REVERSE)

    check_calls(mark(network, y=rows, z=last(loop, state.get_output(0))), [{}])


def test_boxes_and_places_of_constants():
    network = trt.INetworkDefinition()
    boxes = constant(network, [[[0, 0, 4, 4], [10, 0, 14, 4]]], np.float32)
    scores = combine(network, constant(network, [[[1], [2]]], np.float32), 1)
    layer = network.add_nms(boxes, scores, constant(network, 2, np.int32))
    layer.set_input(3, constant(network, 0.5, np.float32))
    places = network.add_non_zero(combine(network, constant(network, [0, 3], np.int32), 0, Op.GREATER)).get_output(0)

    check_calls(mark(network, y=layer.get_output(0), z=places), [{}])


def test_rows_of_a_loop_that_never_runs_have_their_lengths():
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (-1, -1))
    loop = network.add_loop()
    loop.add_trip_limit(combine(network, constant(network, 1, np.int64), 0, Op.LESS), WHILE)
    row = network.add_reduce(x, trt.ReduceOperation.SUM, 1, False).get_output(0)
    mark(network, y=stacked(loop, row, constant(network, 5, np.int64), REVERSE, 1))

    check_calls(network, [{"x": np.ones((2, length), np.float32)} for length in (3, 0, 4)])


@pytest.mark.parametrize("count", [None, 2, "n"])
def test_rows_below_a_false_condition_that_only_openvino_folds(count):
    network = trt.INetworkDefinition()
    x, n = network.add_input("x", trt.float32, (2, -1)), network.add_input("n", trt.int32, ())
    loop = network.add_loop() if count is None else counted(network, n if count == "n" else count)
    number = loop.add_iterator(constant(network, np.arange(7, dtype=np.int32))).get_output(0)
    loop.add_trip_limit(combine(network, number, 0, Op.LESS), WHILE)
    fixed = stacked(loop, constant(network, np.int8([1, 1])), constant(network, 5, np.int64), REVERSE, 1)
    mark(
        network, y=stacked(loop, x, constant(network, 7, np.int64), REVERSE), z=fixed, count=cast(network, n, trt.int64)
    )

    check_calls(network, [{"x": np.ones((2, length), np.float32), "n": np.int32(2)} for length in (3, 0, 4)])


@pytest.mark.parametrize("op", [Op.AND, Op.OR, Op.XOR])
def test_state_that_stays_a_constant_flag(op):
    network = trt.INetworkDefinition()
    n = network.add_input("n", trt.int64, ())
    loop = counted(network, n)
    no, yes = (loop.add_recurrence(constant(network, np.bool_(number))) for number in (False, True))
    no.set_input(1, no.get_output(0))
    yes.set_input(1, constant(network, np.bool_(True)))
    flags = combine(network, yes.get_output(0), no.get_output(0), op)
    mark(network, y=stacked(loop, flags, constant(network, 5, np.int64)), z=last(loop, no.get_output(0)))

    check_calls(network, [{"n": np.int64(trips)} for trips in (2, 1, 2, 0, 5)])


@pytest.mark.parametrize("count", [None, 3])
def test_loop_of_constants_around_a_state_that_stays(count):
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.int32, (-1, -1))
    loop = network.add_loop() if count is None else counted(network, count, np.int64)
    state, limits = loop.add_recurrence(x), loop.add_iterator(constant(network, np.int64([0, 1, 2, 3, 0])))
    state.set_input(1, state.get_output(0))
    loop.add_trip_limit(combine(network, limits.get_output(0), 2, Op.LESS), WHILE)
    rows = stacked(loop, constant(network, np.bool_([True, True])), constant(network, 5, np.int64), REVERSE)
    mark(network, y=rows, z=combine(network, last(loop, state.get_output(0)), [[1]]))

    check_calls(network, [{"x": np.ones((2, length), np.int32)} for length in (3, 0, 4)])


@pytest.mark.parametrize(("limit", "count"), BELOW)
def test_loop_that_is_known_not_to_run_is_left_out(limit, count):
    network = below(limit, count)

    assert (b'type="Loop"' in export(network)[0]) == (limit > 0 and count in (None, 1))
    check_calls(network, [{"x": np.ones((length, 2), np.float32), "n": np.int32(length)} for length in (3, 0, 1)])
