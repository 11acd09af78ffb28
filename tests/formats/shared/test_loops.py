"""Loops built from a body, limits and carried values."""

import numpy as np
import pytest

import netloop
from netloop.formats.shared import IterationResult, LoopLimits, LoopNames, StackedOutput, build_loop
from netloop.model.formulas import FormulaBuilder
from netloop.model.layers.loop import ITripLimitLayer
from netloop.values.diagnostics import LayerError
from netloop.values.enums import TripLimit

NAME = LoopNames("l")


@pytest.fixture
def make():
    return FormulaBuilder(netloop.INetworkDefinition())


def doubling(make, below=None, **output):
    """A body that doubles a value while it is below a limit, with a row for each iteration."""

    def body(loop, number, values):
        (x,) = values
        goes_on = make.constant(True) if below is None else make.less(make.reduce_max(x) if x.type.rank else x, below)
        return IterationResult(goes_on, [make.add(x, x)], [StackedOutput(x, **output)], [make.mul(x, 3.0)])

    return body


def outputs_of(make, result, **inputs):
    tensors = {"last": result.last, "rows": result.rows, "finals": result.finals}
    for name, tensor in tensors.items():
        tensor[0].name = name
        make.network.mark_output(tensor[0])
    return netloop.evaluate(make.network, inputs)


def limits_of(make):
    return {layer.kind for layer in make.network if isinstance(layer, ITripLimitLayer)}


def one(make):
    return make.constant(np.float32(1))


@pytest.mark.parametrize(("count", "rows"), [(0, []), (1, [1]), (4, [1, 2, 4, 8])])
def test_count_limits_the_iterations(make, count, rows):
    result = build_loop(make, NAME, [one(make)], LoopLimits(make.constant(np.int64(count)), None), doubling(make))
    found = outputs_of(make, result)

    assert limits_of(make) == {TripLimit.COUNT}
    assert (found["last"], found["rows"].tolist()) == (2**count, rows)
    assert found["finals"] == (3 * rows[-1] if rows else 0)


def test_condition_that_stays_true_makes_a_counted_loop(make):
    limits = LoopLimits(make.constant(np.int64(3)), make.constant(True))
    build_loop(make, NAME, [one(make)], limits, doubling(make))

    assert limits_of(make) == {TripLimit.COUNT}


@pytest.mark.parametrize("reverse", [False, True])
def test_condition_ends_the_loop_earlier_and_rows_are_cut(make, reverse):
    most = make.constant(np.int64(9))
    limits = LoopLimits(most, make.constant(True), most)
    found = outputs_of(make, build_loop(make, NAME, [one(make)], limits, doubling(make, 4.0, reverse=reverse)))

    assert limits_of(make) == {TripLimit.COUNT, TripLimit.WHILE}
    assert found["rows"].tolist() == [1, 2, 4][:: -1 if reverse else 1]


def test_rows_without_a_bound_are_stacked_by_a_second_loop(make):
    limits = LoopLimits(None, make.constant(True))
    found = outputs_of(make, build_loop(make, NAME, [one(make)], limits, doubling(make, 4.0)))

    assert len(make.network.loops) == 2
    assert found["rows"].tolist() == [1, 2, 4]


@pytest.mark.parametrize("count", [0, 2])
def test_joined_rows_are_concatenated_along_their_own_axis(make, count):
    start = make.constant(np.float32([[1, 2], [3, 4]]))
    body = doubling(make, axis=1, joined=True)
    found = outputs_of(make, build_loop(make, NAME, [start], LoopLimits(make.constant(np.int64(count)), None), body))

    assert found["rows"].tolist() == [[1, 2, 2, 4][: 2 * count], [3, 4, 6, 8][: 2 * count]]


def test_body_is_built_again_when_a_carried_length_changes(make):
    calls = []

    def body(loop, number, values):
        calls.append(values[0].type.shape)
        return IterationResult(make.constant(True), [make.concat([values[0], values[0]], 0)])

    start = make.constant(np.float32([1]))
    result = build_loop(make, NAME, [start], LoopLimits(make.constant(np.int64(3)), None), body)

    assert calls == [(1,), (-1,)]
    result.last[0].name = "last"
    make.network.mark_output(result.last[0])
    assert netloop.evaluate(make.network, {})["last"].tolist() == [1] * 8


def test_loop_without_an_end_is_refused(make):
    with pytest.raises(LayerError, match="no trip count, and its condition stays true"):
        build_loop(make, NAME, [one(make)], LoopLimits(None, make.constant(True)), doubling(make))


def test_carried_value_keeps_its_element_type(make):
    def body(loop, number, values):
        return IterationResult(make.constant(True), [make.cast(values[0], np.int32)])

    with pytest.raises(LayerError, match="carried value 0 is float32"):
        build_loop(make, NAME, [one(make)], LoopLimits(make.constant(np.int64(3)), None), body)


@pytest.mark.parametrize(("count", "rows"), [(-1, [1, 2, 4]), (2, [1, 2])])
def test_negative_count_of_an_endless_loop_sets_no_limit(make, count, rows):
    limits = LoopLimits(make.constant(np.int64(count)), make.constant(True), make.constant(np.int64(9)), endless=True)
    found = outputs_of(make, build_loop(make, NAME, [one(make)], limits, doubling(make, 4.0)))

    assert found["rows"].tolist() == rows
