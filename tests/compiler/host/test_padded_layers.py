"""Each kind of layer on padded axes: poison behind the end of what it reads reaches no result, and new lengths compile
nothing."""

import numpy as np
import pytest

import netloop as trt
from netloop.compiler.host import padded_pieces, program
from netloop.compiler.host.padding import bucket
from netloop.compiler.xla_compilation import XlaFunction
from tests.support.devices import assert_allclose
from tests.support.examples import mostly_slow
from tests.support.networks import Op, combine, constant, counted, counter, last, mark, stacked
from tests.support.unknown_lengths import CHOSEN, OnlyChosen, poisoned

MOST = 40
LENGTHS = 5, 0, 1, 6, 7, 8
"""The first one gets a program of its own, and the last three share one."""
ALL_LENGTHS = 5, 0, 1, 2, 3, 4, 6, 7, 8, 9, 15, 16, 17, 31, 32, 33, 39, 40
NONE, TRANSPOSE, VECTOR = trt.MatrixOperation.NONE, trt.MatrixOperation.TRANSPOSE, trt.MatrixOperation.VECTOR
Reduce, Cumulative, TopK = trt.ReduceOperation, trt.CumulativeOperation, trt.TopKOperation
Coordinates, Rounding = trt.ResizeCoordinateTransformation, trt.ResizeRoundMode
Causal, REVERSE = trt.CausalMaskKind, trt.LoopOutput.REVERSE
FIRST, SECOND = 0, 1


@pytest.fixture(autouse=True)
def all_in_programs(monkeypatch):
    """Only rows are chosen by numpy, and padding is poison."""
    monkeypatch.setattr(program, "NumpyLayers", OnlyChosen)
    monkeypatch.setattr(padded_pieces, "_longer", poisoned)


@pytest.fixture
def programs(monkeypatch):
    """The programs that are compiled from now on."""
    results, built = [], XlaFunction._built

    def counted_built(self, *given):
        results.append(self)
        return built(self, *given)

    monkeypatch.setattr(XlaFunction, "_built", counted_built)
    return results


def chosen(network, name="mask"):
    """The positions at which a mask is true, as many as only a run knows: int32[n]."""
    mask = network.add_input(name, trt.bool, (MOST,))
    places = network.add_non_zero(mask, trt.int32).get_output(0)
    layer = network.add_shuffle(places)
    layer.reshape_dims, layer.name = (-1,), f"{CHOSEN} places"
    return layer.get_output(0)


def rows(network):
    """Rows of x, as many as only a run knows: float32[n, 3]."""
    x = network.add_input("x", trt.float32, (MOST, 3))
    layer = network.add_gather(x, chosen(network), 0)
    layer.name = f"{CHOSEN} rows"
    return layer.get_output(0)


def places_of(x):
    """The positions of the rows in x: int32[n]."""
    return x.producer.inputs[1]


def inputs_of(length):
    mask = np.zeros(MOST, np.bool_)
    mask[np.random.default_rng(length).permutation(MOST)[:length]] = True
    x = np.random.default_rng(7).normal(size=(MOST, 3)).astype(np.float32)
    return {"x": x, "mask": mask}


def reduced(operation, axes, dtype=None, keep=False):
    def add(network, x):
        x = x if dtype is None else number(network, x, dtype)
        return network.add_reduce(x, operation, axes, keep).get_output(0)

    return add


def number(network, x, dtype):
    """x as whole numbers of a type."""
    return network.add_cast(combine(network, x, 5.0, Op.PROD), dtype).get_output(0)


def softmax(axis):
    def add(network, x):
        layer = network.add_softmax(x)
        layer.axes = 1 << axis
        return layer.get_output(0)

    return add


def cumulative(operation, reverse, exclusive):
    def add(network, x):
        return network.add_cumulative(x, constant(network, 0, np.int32), operation, exclusive, reverse).get_output(0)

    return add


def topk(operation, dtype=None):
    def add(network, x):
        x = x if dtype is None else number(network, x, dtype)
        both = network.add_concatenation([x, x]).get_output(0)
        more = network.add_concatenation([both, constant(network, np.full((2, 3), 0.5), x.type.dtype)]).get_output(0)
        layer = network.add_topk(more, operation, 2, 1)
        return layer.get_output(0), layer.get_output(1)

    return add


def products(network, x):
    """Products with one, the other, and both operands padded along what is summed, and along none."""
    table = constant(network, np.arange(6).reshape(3, 2), np.float32)
    return (
        network.add_matrix_multiply(x, TRANSPOSE, x, NONE).get_output(0),
        network.add_matrix_multiply(x, NONE, x, TRANSPOSE).get_output(0),
        network.add_matrix_multiply(x, NONE, table, NONE).get_output(0),
        network.add_matrix_multiply(x, TRANSPOSE, column(network, x), VECTOR).get_output(0),
        network.add_matrix_multiply(column(network, x), VECTOR, column(network, x), VECTOR).get_output(0),
    )


def column(network, x):
    """float32[n]."""
    return network.add_gather(x, constant(network, 1, np.int32), 1).get_output(0)


def einsum(equation, *operands):
    def add(network, x):
        named = {"x": x, "v": column(network, x)}
        return network.add_einsum([named[name] for name in operands], equation).get_output(0)

    return add


def outer(network, x):
    v = column(network, x)
    across = network.add_unsqueeze(v, constant(network, [0], np.int32)).get_output(0)
    down = network.add_unsqueeze(v, constant(network, [1], np.int32)).get_output(0)
    product = combine(network, across, down, Op.PROD)
    return product, network.add_reduce(product, Reduce.MAX, 1, False).get_output(0)


def gathered(network, x):
    """The last row by a negative index, rows by indices of which some are behind the end, and elements."""
    some = constant(network, [[-1, 0], [39, -40]], np.int32)
    ranks = network.add_cast(combine(network, column(network, x), 1.0, Op.GREATER), trt.int32).get_output(0)
    back = network.add_unary(ranks, trt.UnaryOperation.NEG).get_output(0)
    element = network.add_gather_v2(column(network, x), back, trt.GatherMode.ELEMENT)
    at = network.add_unsqueeze(back, constant(network, [1], np.int32)).get_output(0)
    position = network.add_gather_v2(x, at, trt.GatherMode.ND)
    safe = network.add_concatenation([x, constant(network, np.ones((MOST, 3), np.float32))]).get_output(0)
    return (
        network.add_gather(safe, some, 0).get_output(0),
        network.add_gather(x, back, 0).get_output(0),
        element.get_output(0),
        position.get_output(0),
    )


def scattered(reduction):
    def add(network, x):
        """Into a table at some rows, and into the rows by positions of their own."""
        table = constant(network, np.ones((MOST, 3), np.float32))
        at = network.add_unsqueeze(places_of(x), constant(network, [1], np.int32)).get_output(0)
        into = network.add_scatter(table, at, x, trt.ScatterMode.ND)
        ranks = network.add_cast(combine(network, x, 9.0, Op.GREATER), trt.int32).get_output(0)
        within = network.add_scatter(x, ranks, x, trt.ScatterMode.ELEMENT)
        across = network.add_scatter(table, ranks, x, trt.ScatterMode.ELEMENT)
        across.axis = 1
        layers = (into, across) if reduction is Reduce.NONE else (into, within, across)
        for layer in layers:
            layer.reduction = reduction
        return tuple(layer.get_output(0) for layer in layers)

    return add


def one_hot(network, x):
    values, depth = constant(network, [0, 1], np.float32), constant(network, 4, np.int32)
    return network.add_one_hot(number(network, x, trt.int32), values, depth, -1).get_output(0)


def joined(network, x):
    """Joined with themselves, and with one row between, along the rows and the columns."""
    one = constant(network, np.full((1, 3), 7), np.float32)
    along = network.add_concatenation([x, one, x])
    across = network.add_concatenation([x, x])
    along.axis, across.axis = FIRST, SECOND
    return along.get_output(0), across.get_output(0)


def sliced(network, x):
    long = network.add_concatenation([constant(network, np.ones((4, 3)), np.float32), x]).get_output(0)
    layers = [
        network.add_slice(long, (3, 2), (4, 2), (-1, -2)),
        network.add_slice(x, (-2, 0), (20, 3), (1, 1)),
    ]
    layers[1].mode = trt.SampleMode.FILL
    return tuple(layer.get_output(0) for layer in layers)


def images(network, x):
    """float32[1, 1, n, 3]."""
    return network.add_unsqueeze(x, constant(network, [0, 1], np.int32)).get_output(0)


def zero_padded(network, x):
    return network.add_padding_nd(images(network, x), (1, 0), (2, 1)).get_output(0)


def pooled(kind, padding, mode=trt.PaddingMode.EXPLICIT_ROUND_DOWN):
    def add(network, x):
        x = network.add_padding_nd(images(network, x), (2, 0), (1, 0)).get_output(0)
        layer = network.add_pooling_nd(x, kind, (2, 2))
        layer.padding_nd, layer.stride_nd, layer.average_count_excludes_padding = (padding, 0), (2, 1), False
        layer.padding_mode = mode
        return layer.get_output(0)

    return add


def resized(coordinates, rounding, mode=trt.InterpolationMode.NEAREST, scales=(2.5, 1)):
    def add(network, x):
        layer = network.add_resize(x)
        layer.scales, layer.resize_mode = scales, mode
        layer.coordinate_transformation, layer.nearest_rounding = coordinates, rounding
        return layer.get_output(0)

    return add


def turned(network, x):
    """Some first rows of each column in the other order, and some first columns of each row."""
    shape = network.add_shape(x).get_output(0)
    lengths = network.add_gather(shape, constant(network, [0, 0, 0], np.int32), 0).get_output(0)
    by_columns = network.add_reverse_sequence(x, lengths)
    few = network.add_elementwise(places_of(x), constant(network, [3], np.int32), Op.MIN).get_output(0)
    by_rows = network.add_reverse_sequence(x, few)
    by_rows.batch_axis, by_rows.sequence_axis = 0, 1
    return by_columns.get_output(0), by_rows.get_output(0)


def normalized(network, x):
    """Over the rows, the columns, and both."""
    one, zero = constant(network, np.ones((1, 1)), np.float32), constant(network, np.zeros((1, 1)), np.float32)
    return tuple(network.add_normalization_v2(x, one, zero, axes).get_output(0) for axes in (1, 2, 3))


def group_normalized(network, x):
    """Two groups of four channels, which are the same rows."""
    channels = network.add_unsqueeze(x, constant(network, [0, 1], np.int32)).get_output(0)
    four = network.add_concatenation([channels, channels, combine(network, channels, 2.0, Op.PROD), channels])
    one = constant(network, np.ones((1, 4, 1, 1)), np.float32)
    layer = network.add_normalization_v2(four.get_output(0), one, one, 0b1100)
    layer.num_groups = 2
    return layer.get_output(0)


def attention(causal=Causal.NONE, norm=trt.AttentionNormalizationOp.SOFTMAX, is_masked=False):
    def add(network, x):
        tokens = images(network, x)
        few = constant(network, np.ones((1, 1, 2, 3)), np.float32)
        longer = network.add_concatenation([few, tokens])
        longer.axis = 2
        both = [(tokens, longer.get_output(0)), (few, tokens)]
        results = []
        for query, keys in both:
            view = network.add_attention_v2(query, keys, keys, norm, causal)
            if is_masked:
                view.mask = mask_of(network, query, keys)
            results.append(view.get_output(0))
        return tuple(results)

    return add


def mask_of(network, query, keys):
    sums = [network.add_reduce(x, Reduce.SUM, 8, True).get_output(0) for x in (query, keys)]
    return network.add_matrix_multiply(sums[0], NONE, sums[1], TRANSPOSE).get_output(0)


def ragged(network, x):
    layer = network.add_shuffle(images(network, x))
    layer.reshape_dims = (1, -1, 3)
    bounds = number(network, reduced(Reduce.MAX, 4, keep=True)(network, layer.get_output(0)), trt.int32)
    few = network.add_elementwise(bounds, constant(network, [[[2]]], np.int32), Op.MIN).get_output(0)
    safe = network.add_elementwise(few, constant(network, [[[0]]], np.int32), Op.MAX).get_output(0)
    return network.add_ragged_softmax(layer.get_output(0), safe).get_output(0)


def reshaped(network, x):
    shapes = (-1,), (0, -1), (1, -1, 3), (-1, 1, 1, 3)
    layers = [network.add_shuffle(x) for _ in shapes]
    for layer, shape in zip(layers, shapes, strict=True):
        layer.reshape_dims = shape
    return tuple(layer.get_output(0) for layer in layers)


def regrouped(network, x):
    """Two groups of rows, which are merged and set apart again: the padding of the first is not behind all elements."""
    groups = combine(network, shuffled(network, x, (1, -1, 3)), constant(network, [[[1]], [[2]]], np.float32), Op.PROD)
    merged = shuffled(network, groups, (-1, 3))
    turned = network.add_shuffle(groups)
    turned.first_transpose, turned.reshape_dims, turned.second_transpose = (2, 0, 1), (3, -1, 1), (1, 2, 0)
    results = [shuffled(network, x, shape) for x in (groups, merged) for shape in ((2, -1, 3), (2, -1), (-1,))]
    return merged, *results, turned.get_output(0)


def shuffled(network, x, shape):
    layer = network.add_shuffle(x)
    layer.reshape_dims = shape
    return layer.get_output(0)


def length_of(network, x):
    shape = network.add_shape(x).get_output(0)
    return network.add_gather(shape, constant(network, 0, np.int32), 0).get_output(0)


def running_sums(network, x):
    """Sums of the rows so far, from the first and from the last, and the number of rows."""
    results = []
    for is_reverse in (False, True):
        length = length_of(network, x)
        loop = counted(network, length)
        total = loop.add_recurrence(constant(network, np.zeros(3), np.float32))
        total.set_input(1, combine(network, total.get_output(0), loop.add_iterator(x, 0, is_reverse).get_output(0)))
        kinds = (REVERSE, trt.LoopOutput.CONCATENATE)
        every = [stacked(loop, total.get_input(1), length, kind) for kind in kinds]
        results += [*every, last(loop, total.get_output(0)), last(loop, counter(network, loop))]
    return tuple(results)


def padded_states(network, x):
    """A state with as many rows as there are iterations, each of which reads all of them."""
    length = length_of(network, x)
    loop = counted(network, length)
    state = loop.add_recurrence(x)
    now = state.get_output(0)
    row = loop.add_iterator(x).get_output(0)
    mean = network.add_reduce(now, Reduce.AVG, 1, False).get_output(0)
    change = network.add_unsqueeze(combine(network, mean, row), constant(network, [0], np.int32)).get_output(0)
    state.set_input(1, combine(network, combine(network, now, change), 0.5, Op.PROD))
    return last(loop, now), stacked(loop, mean, length), stacked(loop, now, length, axis=1)


def nested_loops(network, x):
    """The sum of each column so far, for each pair of rows."""
    length = length_of(network, x)
    outer_loop = counted(network, length)
    row = outer_loop.add_iterator(x).get_output(0)
    inner = counted(network, length)
    total = inner.add_recurrence(row)
    total.set_input(1, combine(network, total.get_output(0), inner.add_iterator(x).get_output(0)))
    sums = stacked(inner, total.get_output(0), length)
    return stacked(outer_loop, sums, length), stacked(outer_loop, softmax(0)(network, sums), length, REVERSE)


def few_iterations(network, x):
    """Three iterations, whatever the length, and rows that are as many as the length."""
    length = network.add_elementwise(length_of(network, x), constant(network, 3, np.int64), Op.MAX).get_output(0)
    loop = counted(network, 3)
    state = loop.add_recurrence(x)
    state.set_input(1, combine(network, state.get_output(0), 0.5, Op.PROD))
    return last(loop, state.get_output(0)), stacked(loop, reduced(Reduce.MIN, 1)(network, state.get_output(0)), length)


def searched(network, x):
    """A loop that ends when the sum of a column is small."""
    loop = network.add_loop()
    state = loop.add_recurrence(x)
    now = state.get_output(0)
    state.set_input(1, combine(network, now, 0.5, Op.PROD))
    size = network.add_unary(column(network, now), trt.UnaryOperation.ABS).get_output(0)
    total = network.add_reduce(size, Reduce.SUM, 1, False).get_output(0)
    loop.add_trip_limit(combine(network, total, 0.1, Op.GREATER), trt.TripLimit.WHILE)
    return last(loop, now), last(loop, counter(network, loop))


def chosen_branch(network, x):
    total = network.add_reduce(column(network, x), Reduce.SUM, 1, False).get_output(0)
    conditional = network.add_if_conditional()
    conditional.set_condition(combine(network, total, 0.0, Op.GREATER))
    inside = conditional.add_input(x).get_output(0)
    branches = softmax(0)(network, inside), combine(network, inside, 2.0, Op.PROD)
    return conditional.add_output(*branches).get_output(0)


def several(*functions):
    """The results of functions that take a network and a tensor."""

    def add(network, x):
        results = [function(network, x) for function in functions]
        return tuple(part for result in results for part in (result if isinstance(result, tuple) else (result,)))

    return add


CASES = {
    "sums": several(
        reduced(Reduce.SUM, 1), reduced(Reduce.SUM, 3, keep=True), reduced(Reduce.SUM, 2),
        reduced(Reduce.SUM, 1, trt.int32), reduced(Reduce.PROD, 1),
    ),
    "extremes": several(
        reduced(Reduce.MAX, 1), reduced(Reduce.MAX, 3, trt.int64), reduced(Reduce.MIN, 1, keep=True),
        reduced(Reduce.MIN, 1, trt.bool),
    ),
    "means": several(
        reduced(Reduce.AVG, 1), reduced(Reduce.AVG, 3), reduced(Reduce.AVG, 2), reduced(Reduce.AVG, 1, trt.int32),
        reduced(Reduce.AVG, 3, trt.float16),
    ),
    "softmax": several(softmax(0), softmax(1)),
    "cumulative": several(
        cumulative(Cumulative.SUM, False, False), cumulative(Cumulative.SUM, True, False),
        cumulative(Cumulative.PROD, True, True),
    ),
    "the largest and smallest": several(topk(TopK.MAX), topk(TopK.MIN), topk(TopK.MAX, trt.int32)),
    "products": products,
    "einsum": several(
        einsum("ij,i->j", "x", "v"), einsum("ij->", "x"), einsum("ij,ik,i->jk", "x", "x", "v"),
        einsum("i,j->ij", "v", "v"),
    ),
    "outer product": outer,
    "gathers": gathered,
    "scatters": several(*map(scattered, (Reduce.NONE, Reduce.SUM, Reduce.PROD, Reduce.MAX))),
    "one hot": one_hot,
    "joined": joined,
    "slices": sliced,
    "zeros around": zero_padded,
    "windows": several(pooled(trt.PoolingType.MAX, 1), pooled(trt.PoolingType.AVERAGE, 1)),
    "windows, rounded up": pooled(trt.PoolingType.MAX, 1, trt.PaddingMode.EXPLICIT_ROUND_UP),
    "resized": several(
        resized(Coordinates.ASYMMETRIC, Rounding.FLOOR), resized(Coordinates.HALF_PIXEL, Rounding.HALF_DOWN),
        resized(Coordinates.HALF_PIXEL, Rounding.HALF_UP, scales=(3, 2)),
        resized(Coordinates.HALF_PIXEL, Rounding.CEIL, trt.InterpolationMode.LINEAR, (1, 2)),
    ),
    "turned": turned,
    "normalized": several(normalized, group_normalized),
    "attention": several(attention(), attention(norm=trt.AttentionNormalizationOp.NONE), attention(is_masked=True)),
    "attention to earlier keys": several(*map(attention, (Causal.UPPER_LEFT, Causal.LOWER_RIGHT))),
    "softmax of rows with bounds": ragged,
    "reshaped": reshaped,
    "regrouped": regrouped,
    "running sums": running_sums,
    "padded states": padded_states,
    "nested loops": nested_loops,
    "few iterations": few_iterations,
    "loop with a condition": searched,
    "branches": chosen_branch,
}  # fmt: skip


def check(network, name, lengths, programs):
    x = rows(network)
    results = CASES[name](network, x)
    results = results if isinstance(results, tuple) else (results,)
    mark(network, **{f"y{index}": result for index, result in enumerate(results)})
    engine = trt.compile(network)
    buckets = set[int]()
    for length in lengths:
        given = inputs_of(length)
        wanted, before = trt.evaluate(network, given), len(programs)
        got = engine(given)
        for key, value in wanted.items():
            assert_allclose(got[key], value, rtol=2e-5, atol=2e-5, strict=True, err_msg=f"{key} of length {length}")
        # the first length has programs of its own
        if length != lengths[0]:
            assert len(programs) - before <= (bucket(length) not in buckets), f"length {length}"
            buckets.add(bucket(length))


@pytest.mark.parametrize("name", mostly_slow(18, CASES))
def test_poison_behind_the_end_reaches_no_result(network, name, programs):
    check(network, name, LENGTHS, programs)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_poison_behind_any_end_reaches_no_result(network, name, programs):
    check(network, name, ALL_LENGTHS, programs)


def test_loop_that_fails_for_its_length_fails(network, programs):
    """Of rows of which four are stacked: up to a length of four, loops of new lengths share a program."""
    x = rows(network)
    loop = counted(network, length_of(network, x))
    mark(network, y=stacked(loop, loop.add_iterator(x).get_output(0), constant(network, 4, np.int32)))
    engine = trt.compile(network)

    for length in (4, 3, 2):
        given = inputs_of(length)
        assert_allclose(engine(given)["y"], trt.evaluate(network, given)["y"], strict=True)
    with pytest.raises(trt.ExecutionError, match="room for 4 elements"):
        engine(inputs_of(5))


def test_bucketing_can_be_turned_off(network, programs):
    x = rows(network)
    mark(network, y=softmax(0)(network, x))
    engine = trt.compile(network, passes=[name for name in trt.PASSES if name != "bucketing"])

    for length in (4, 5, 6):
        before = len(programs)
        engine(inputs_of(length))
        assert len(programs) > before


def test_loops_in_shared_programs_say_how_they_run(network):
    x = rows(network)
    length = length_of(network, x)
    loop = counted(network, length)
    doubled = combine(network, loop.add_iterator(x).get_output(0), 2.0, Op.PROD)
    mark(network, y=stacked(loop, doubled, length))
    loop.name = "doubled"
    engine = trt.compile(network)

    strategies = []
    for length in (4, 5):
        engine(inputs_of(length))
        strategies.append(engine.loop_strategies["doubled"].name)
    assert strategies == ["scan", "while"]
