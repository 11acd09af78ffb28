"""Sizes in loops that are the same in all iterations become constants."""

import numpy as np
import pytest

import netloop as trt
from tests.support.networks import WHILE, Op, combine, constant, counted, counter, last, mark

X = np.arange(24, dtype=np.float32).reshape(12, 2)


def length(network, tensor):
    """The length of axis 0; 0-D."""
    return network.add_gather(network.add_shape(tensor).get_output(0), constant(network, 0), 0).get_output(0)


def listed(network, tensor):
    """A number as a list of one."""
    return network.add_unsqueeze(tensor, constant(network, [0], np.int64)).get_output(0)


def chunk(network, x, start, most=4):
    """At most some rows of x from a position on; there are fewer at its end."""
    rest = combine(network, length(network, x), start, Op.SUB)
    layer = network.add_slice(x, (0,), (0,), (1,))
    layer.axes = (0,)
    layer.set_input(1, listed(network, start))
    layer.set_input(2, listed(network, combine(network, rest, most, Op.MIN)))
    return layer.get_output(0)


def chunks(network, count, by=4, most=4):
    """y: the sums of chunks of x [-1, 2], one in each iteration."""
    x, loop = network.add_input("x", trt.float32, (-1, 2)), counted(network, count, np.int64)
    start = combine(network, counter(network, loop, 0, np.int64), by, Op.PROD)
    total = loop.add_recurrence(constant(network, np.zeros(2, np.float32)))
    rows = network.add_reduce(chunk(network, x, start, most), trt.ReduceOperation.SUM, 1, False).get_output(0)
    total.set_input(1, combine(network, combine(network, total.get_output(0), 2.0, Op.PROD), rows))
    return mark(network, y=last(loop, total.get_output(0)))


def strategies(engine):
    return {strategy.kind.value for strategy in engine.loop_strategies.values()}


def wanted(x, count, by=4, most=4):
    total = np.zeros(2, np.float32)
    for trip in range(count):
        total = total * 2 + x[trip * by : trip * by + most].sum(0)
    return total


@pytest.mark.parametrize(("count", "by", "most"), [(3, 4, 4), (2, 4, 4), (5, 2, 3), (12, 1, 1)])
def test_loop_over_chunks_of_one_length_is_compiled(network, count, by, most):
    engine = trt.compile(chunks(network, count, by, most))

    np.testing.assert_allclose(np.asarray(engine({"x": X})["y"]), wanted(X, count, by, most))
    assert "host" not in strategies(engine)


@pytest.mark.parametrize(("count", "by", "most"), [(3, 5, 5), (6, 2, 3), (0, 4, 4)])
def test_last_chunk_may_be_shorter(network, count, by, most):
    engine = trt.compile(chunks(network, count, by, most))

    np.testing.assert_allclose(np.asarray(engine({"x": X})["y"]), wanted(X, count, by, most))
    assert strategies(engine) == {"host"}
    assert not [note for note in engine.notes if note.by == "fixed_sizes"]


def test_one_engine_takes_lengths_of_whole_chunks_and_others(network):
    engine = trt.compile(chunks(network, 3))

    for rows in (12, 11, 14, 9):
        x = np.float32(np.random.default_rng(0).normal(size=(rows, 2)))
        np.testing.assert_allclose(np.asarray(engine({"x": x})["y"]), wanted(x, 3), rtol=1e-6)


def test_size_after_the_last_iteration_counts_where_it_is_seen(network):
    x, loop = network.add_input("x", trt.float32, (-1, 2)), counted(network, 3, np.int64)
    start = combine(network, counter(network, loop, 0, np.int64), 4, Op.PROD)
    total = network.add_reduce(chunk(network, x, start), trt.ReduceOperation.SUM, 1, False).get_output(0)
    engine = trt.compile(mark(network, y=last(loop, total)))

    # the chunk behind the last one is empty
    np.testing.assert_array_equal(np.asarray(engine({"x": X})["y"]), [0, 0])


def test_condition_sees_the_size_after_the_last_iteration(network):
    x, loop = network.add_input("x", trt.float32, (-1, 2)), counted(network, 3, np.int64)
    start = combine(network, counter(network, loop, 0, np.int64), 4, Op.PROD)
    total = network.add_reduce(chunk(network, x, start), trt.ReduceOperation.SUM, 0b11, False).get_output(0)
    loop.add_trip_limit(combine(network, total, 1e9, Op.LESS), WHILE)
    state = loop.add_recurrence(constant(network, np.float32(0)))
    state.set_input(1, combine(network, state.get_output(0), total))
    network = mark(network, y=last(loop, state.get_output(0)))

    assert np.asarray(trt.compile(network)({"x": X})["y"]) == X.sum()


def test_chunks_of_a_list_are_one_tensor_again(network):
    x, loop = network.add_input("x", trt.float32, (-1, 2)), counted(network, 3, np.int64)
    start = combine(network, counter(network, loop, 0, np.int64), 4, Op.PROD)
    parts = loop.add_recurrence(network.add_sequence([], trt.float32).get_output(0))
    parts.keeps_shape = False
    part = combine(network, chunk(network, x, start), 2.0, Op.PROD)
    parts.set_input(1, network.add_sequence_insert(parts.get_output(0), part).get_output(0))
    joined = network.add_sequence_concatenation(last(loop, parts.get_output(0)), 0).get_output(0)
    engine = trt.compile(mark(network, y=joined))

    np.testing.assert_array_equal(np.asarray(engine({"x": X})["y"]), X * 2)
    assert engine.latest.function is not None


def test_pass_can_be_left_out(network):
    engine = trt.compile(chunks(network, 3), passes=set(trt.PASSES) - {"fixed_sizes"})

    np.testing.assert_allclose(np.asarray(engine({"x": X})["y"]), wanted(X, 3))
    assert strategies(engine) == {"host"}


def test_counters_that_wrap_around_have_the_sizes_of_a_run():
    network = trt.INetworkDefinition()
    x, loop = network.add_input("x", trt.float32, (12, 2)), counted(network, 4)
    state = loop.add_recurrence(constant(network, 1, np.int32))
    now, total = state.get_output(0), loop.add_recurrence(constant(network, np.zeros(2, np.float32)))
    state.set_input(1, combine(network, now, 2**30))
    size = combine(network, combine(network, now, now, Op.SUB), 3)
    layer = network.add_slice(x, (0,), (0,), (1,))
    layer.axes = (0,)
    layer.set_input(2, listed(network, size))
    rows = network.add_reduce(layer.get_output(0), trt.ReduceOperation.SUM, 1, False).get_output(0)
    total.set_input(1, combine(network, total.get_output(0), rows))
    engine = trt.compile(mark(network, y=last(loop, total.get_output(0))))

    np.testing.assert_allclose(np.asarray(engine({"x": X})["y"]), 4 * X[:3].sum(0))
    assert "host" not in strategies(engine)
