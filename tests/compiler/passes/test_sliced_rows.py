"""Loops over slices of lengths that depend on data, such as embedding bags, are compiled."""

from itertools import pairwise

import jax
import numpy as np
import pytest

import netloop as trt
from netloop.compiler.passes import sliced_rows
from tests.support.devices import only_on_cpus
from tests.support.networks import Op, combine, constant, counted, counter, last, mark, stacked

REDUCED = {
    trt.ReduceOperation.SUM: lambda rows: rows.sum(0),
    trt.ReduceOperation.PROD: lambda rows: rows.prod(0),
    trt.ReduceOperation.MAX: lambda rows: rows.max(0, initial=-np.inf),
    trt.ReduceOperation.MIN: lambda rows: rows.min(0, initial=np.inf),
    trt.ReduceOperation.AVG: lambda rows: rows.sum(0) / np.float32(len(rows)),
}


def length(network, tensor):
    """The length of axis 0; 0-D."""
    return network.add_gather(network.add_shape(tensor).get_output(0), constant(network, 0), 0).get_output(0)


def listed(network, tensor):
    return network.add_unsqueeze(tensor, constant(network, [0], np.int64)).get_output(0)


def limited(network, tensor, most):
    return combine(network, combine(network, tensor, 0, Op.MAX), most, Op.MIN)


class Bags:
    """A loop over the slices of x [-1, 2] between consecutive numbers of an input."""

    def __init__(self, network, is_limited=True):
        self.network, self.is_limited = network, is_limited
        self.x = network.add_input("x", trt.float32, (-1, 2))
        self.offsets = network.add_input("offsets", trt.int64, (-1,))
        count = combine(network, length(network, self.offsets), 1, Op.SUB)
        self.loop = counted(network, count, np.int64)
        self.count = count
        self.i = counter(network, self.loop, 0, np.int64)

    def offset(self, ahead, most):
        at = combine(self.network, self.i, ahead)
        number = self.network.add_gather(self.offsets, at, 0).get_output(0)
        return limited(self.network, number, most) if self.is_limited else number

    def rows(self, x=None):
        x, network = x or self.x, self.network
        most = length(network, x)
        start, end = self.offset(0, most), self.offset(1, most)
        layer = network.add_slice(x, (0,), (0,), (1,))
        layer.axes = (0,)
        layer.set_input(1, listed(network, start))
        size = combine(network, listed(network, end), layer.inputs[1], Op.SUB)
        layer.set_input(2, combine(network, size, 0, Op.MAX) if self.is_limited else size)
        return layer.get_output(0)

    def stacked(self, row):
        return mark(self.network, y=stacked(self.loop, row, self.count))


def reduced(network, rows, op=trt.ReduceOperation.SUM):
    return network.add_reduce(rows, op, 1, False).get_output(0)


def strategies(engine):
    return {strategy.kind.value for strategy in engine.loop_strategies.values()}


def values(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 2)).astype(np.float32)


def offsets(*numbers):
    return np.array(numbers, np.int64)


def wanted(x, numbers, op=trt.ReduceOperation.SUM):
    with np.errstate(all="ignore"):
        return np.array([REDUCED[op](x[a:b]) for a, b in pairwise(numbers)], np.float32)


@pytest.mark.parametrize("op", REDUCED)
def test_reductions_of_bags_are_compiled(network, op):
    bags, x, numbers = Bags(network), values(9), offsets(0, 4, 4, 5, 9, 9)

    engine = trt.compile(bags.stacked(reduced(network, bags.rows(), op)))

    np.testing.assert_allclose(np.asarray(engine({"x": x, "offsets": numbers})["y"]), wanted(x, numbers, op), rtol=1e-6)
    assert "host" not in strategies(engine)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 9])
def test_bags_of_axes_of_any_length(network, n):
    bags, x, numbers = Bags(network), values(n), offsets(0, n // 2, n)

    engine = trt.compile(bags.stacked(reduced(network, bags.rows())))

    np.testing.assert_allclose(np.asarray(engine({"x": x, "offsets": numbers})["y"]), wanted(x, numbers), rtol=1e-6)


def test_nan_of_one_bag_is_in_no_other(network):
    bags, x, numbers = Bags(network), values(6), offsets(0, 2, 4, 6)
    x[[0, 5]] = np.nan, np.inf

    result = np.asarray(trt.compile(bags.stacked(reduced(network, bags.rows())))({"x": x, "offsets": numbers})["y"])

    np.testing.assert_allclose(result, wanted(x, numbers), rtol=1e-6)


def test_layers_between_slice_and_sum_are_compiled(network):
    bags, x, numbers = Bags(network), values(5), offsets(0, 3, 5)
    table = values(7, seed=1)
    indices = network.add_cast(combine(network, bags.rows(), 0.5, Op.LESS), trt.int32).get_output(0)
    looked_up = network.add_gather(constant(network, table), indices, 0).get_output(0)

    engine = trt.compile(bags.stacked(reduced(network, looked_up)))

    rows = table[(x < 0.5).astype(int)]
    np.testing.assert_allclose(
        np.asarray(engine({"x": x, "offsets": numbers})["y"]), [rows[:3].sum(0), rows[3:].sum(0)], rtol=1e-6
    )
    assert "host" not in strategies(engine)


def test_rows_joined_to_a_slice_count(network):
    bags, x, numbers = Bags(network), values(4), offsets(0, 4, 4, 1)
    more = constant(network, np.full((3, 2), 2, np.float32))
    joined = network.add_concatenation([bags.rows(), more])
    joined.axis = 0

    engine = trt.compile(bags.stacked(reduced(network, joined.get_output(0))))

    np.testing.assert_allclose(np.asarray(engine({"x": x, "offsets": numbers})["y"]), wanted(x, numbers) + 6, rtol=1e-6)


def test_other_offsets_have_the_same_program(network):
    bags, x = Bags(network), values(9)
    engine = trt.compile(bags.stacked(reduced(network, bags.rows())))

    for numbers in (offsets(0, 4, 9), offsets(0, 0, 9), offsets(3, 4, 5)):
        np.testing.assert_allclose(np.asarray(engine({"x": x, "offsets": numbers})["y"]), wanted(x, numbers), rtol=1e-6)

    assert engine.program_count == 1


def test_lengths_share_programs(network):
    bags = Bags(network)
    engine = trt.compile(bags.stacked(reduced(network, bags.rows())))

    for n in (5, 6, 7, 8, 9, 15, 16, 17, 2, 3):
        x, numbers = values(n), offsets(0, 1, n - 2, n)
        x[0] = np.nan
        np.testing.assert_allclose(np.asarray(engine({"x": x, "offsets": numbers})["y"]), wanted(x, numbers), rtol=1e-5)
        assert "host" not in strategies(engine)

    # those of the first two lengths, and those of lengths up to 8, 16 and 32
    assert engine.program_count <= 5


def test_slices_that_may_end_behind_the_axis_fail_as_they_did(network):
    bags, x = Bags(network, is_limited=False), values(4)
    engine = trt.compile(bags.stacked(reduced(network, bags.rows())))

    np.testing.assert_allclose(
        np.asarray(engine({"x": x, "offsets": offsets(0, 4)})["y"]), wanted(x, [0, 4]), rtol=1e-6
    )
    with pytest.raises(trt.ExecutionError, match="STRICT_BOUNDS"):
        engine({"x": x, "offsets": offsets(2, 6)})


def test_slice_that_leaves_the_loop_stays_on_the_host(network):
    bags, x = Bags(network), values(4)
    engine = trt.compile(mark(network, y=last(bags.loop, bags.rows())))

    engine({"x": x, "offsets": offsets(0, 2, 4)})

    assert strategies(engine) == {"host"}


def test_large_tensors_stay_on_the_host(network, monkeypatch):
    monkeypatch.setattr(sliced_rows, "MOST_ELEMENTS", 7)
    bags, x = Bags(network), values(4)
    engine = trt.compile(bags.stacked(reduced(network, bags.rows())))

    result = np.asarray(engine({"x": x, "offsets": offsets(0, 2, 4)})["y"])

    np.testing.assert_allclose(result, wanted(x, [0, 2, 4]), rtol=1e-6)
    assert strategies(engine) == {"host"}
    assert "more than 7 elements" in next(iter(engine.loop_strategies.values())).why


# ------------------------------------------------------------------ windows


@pytest.fixture
def windows(monkeypatch):
    """Slices are read in windows, however few elements they have."""
    monkeypatch.setattr(sliced_rows, "FEW_ELEMENTS", 0)


@only_on_cpus("elsewhere slices are read whole")
@pytest.mark.parametrize("op", REDUCED)
def test_reductions_of_long_bags_accumulate(network, windows, op):
    bags, x = Bags(network), values(90)
    numbers = offsets(0, 15, 31, 48, 48, 90, 3, 88, 0, 90)

    engine = trt.compile(bags.stacked(reduced(network, bags.rows(), op)))

    np.testing.assert_allclose(np.asarray(engine({"x": x, "offsets": numbers})["y"]), wanted(x, numbers, op), rtol=1e-4)
    assert "host" not in strategies(engine)
    assert len(engine.loop_strategies) == 2


@pytest.mark.parametrize("op", REDUCED)
def test_nan_and_infinity_of_a_window_are_in_its_bag_only(network, windows, op):
    bags, x = Bags(network), values(60)
    x[[2, 20, 59]], numbers = [[np.nan, np.inf], [np.inf, -np.inf], [-np.inf, np.nan]], offsets(0, 3, 19, 40, 55, 60)

    result = np.asarray(trt.compile(bags.stacked(reduced(network, bags.rows(), op)))({"x": x, "offsets": numbers})["y"])

    np.testing.assert_allclose(result, wanted(x, numbers, op), rtol=1e-4)


@only_on_cpus("elsewhere slices are read whole")
def test_work_of_bags_is_linear(network):
    """Each of 2,000 bags of 4 rows would read 8,000 rows."""
    bags, x = Bags(network), values(8000)
    numbers = offsets(*range(0, 8001, 4))

    engine = trt.compile(bags.stacked(reduced(network, bags.rows())))

    np.testing.assert_allclose(np.asarray(engine({"x": x, "offsets": numbers})["y"]), wanted(x, numbers), rtol=1e-5)
    assert len(engine.loop_strategies) == 2


@only_on_cpus("elsewhere slices are read whole")
def test_means_of_integers_and_rows_that_are_looked_up(network, windows):
    bags, x, numbers = Bags(network), values(40), offsets(0, 1, 40, 40)
    table = np.arange(14, dtype=np.int64).reshape(7, 2)
    indices = network.add_cast(combine(network, bags.rows(), 0.5, Op.LESS), trt.int32).get_output(0)
    looked_up = network.add_gather(constant(network, table), indices, 0).get_output(0)
    layer = network.add_reduce(looked_up, trt.ReduceOperation.SUM, 0b101, True)

    engine = trt.compile(bags.stacked(layer.get_output(0)))

    rows = table[(x < 0.5).astype(int)]
    sums = [rows[a:b].sum((0, 2))[None, :, None] for a, b in pairwise(numbers)]
    np.testing.assert_array_equal(np.asarray(engine({"x": x, "offsets": numbers})["y"]), sums)
    assert len(engine.loop_strategies) == 2


@only_on_cpus("elsewhere slices are read whole")
def test_sums_of_half_precision_round_once(network, windows):
    bags, x, numbers = Bags(network), np.full((80, 2), 0.1, np.float32), offsets(0, 80)
    x[0] = 2048
    halves = network.add_cast(bags.rows(), trt.float16).get_output(0)

    engine = trt.compile(bags.stacked(reduced(network, halves)))

    np.testing.assert_array_equal(np.asarray(engine({"x": x, "offsets": numbers})["y"]), np.float16([[2056, 2056]]))
    assert len(engine.loop_strategies) == 2


def less_the_largest(network, rows):
    """Less the largest row, so that all rows are needed first."""
    largest = network.add_reduce(rows, trt.ReduceOperation.MAX, 1, True).get_output(0)
    return combine(network, rows, largest, Op.SUB)


def products(network, rows):
    """Of all pairs of rows."""
    first, second = (combine(network, network.add_unsqueeze(rows, constant(network, [axis], np.int64)).get_output(0), 1)
                     for axis in (0, 1))  # fmt: skip
    layer = network.add_reduce(combine(network, first, second, Op.PROD), trt.ReduceOperation.SUM, 1, False)
    return layer.get_output(0)


def joined(network, rows):
    layer = network.add_concatenation([rows, constant(network, np.full((3, 2), 2, np.float32))])
    layer.axis = 0
    return layer.get_output(0)


def accumulated(network, rows):
    kind = trt.CumulativeOperation.SUM
    return network.add_cumulative(rows, constant(network, 0), kind, False, False).get_output(0)


@pytest.mark.parametrize("whole", [less_the_largest, products, joined, accumulated])
def test_layers_that_need_all_rows_do_not_read_windows(network, windows, whole):
    bags, x, numbers = Bags(network), values(40), offsets(0, 4, 40)

    y = bags.stacked(reduced(network, whole(network, bags.rows())))
    engine = trt.compile(y)
    inputs = {"x": x, "offsets": numbers}

    meant = trt.evaluate(y, inputs)["y"]
    np.testing.assert_allclose(np.asarray(engine(inputs)["y"]), meant, rtol=1e-4, atol=1e-4)
    assert len(engine.loop_strategies) == 1


def test_rows_that_leave_the_loop_are_in_no_window(network, windows):
    bags, x = Bags(network), values(40)
    rows = bags.rows()
    mark(network, rows=last(bags.loop, rows))
    engine = trt.compile(bags.stacked(reduced(network, rows)))

    result = engine({"x": x, "offsets": offsets(0, 20, 40)})

    np.testing.assert_allclose(np.asarray(result["y"]), wanted(x, [0, 20, 40]), rtol=1e-5)
    assert strategies(engine) == {"host"}


def test_lengths_of_windows_share_programs(network, windows):
    bags = Bags(network)
    engine = trt.compile(bags.stacked(reduced(network, bags.rows())))

    for n in (5, 20, 37, 60, 35, 50, 64, 2, 3):
        x, numbers = values(n), offsets(0, 1, n - 2, n)
        np.testing.assert_allclose(np.asarray(engine({"x": x, "offsets": numbers})["y"]), wanted(x, numbers), rtol=1e-5)
        assert "host" not in strategies(engine)

    assert engine.program_count <= 6


def test_pure_functions_read_slices_whole(network, windows):
    bags, x, numbers = Bags(network), values(40), offsets(0, 4, 40)
    function, weights = trt.to_jax(bags.stacked(reduced(network, bags.rows())))

    slopes = jax.grad(lambda x: function(weights, {"x": x, "offsets": numbers})["y"].sum())(x)

    np.testing.assert_array_equal(slopes, np.ones_like(x))
