"""Layers that host execution computes by numpy."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import netloop as trt
from netloop.compiler.host import output_arrays
from netloop.compiler.host.compiled_pieces import Pieces
from netloop.compiler.host.frame import HostFrame
from netloop.compiler.host.padded_pieces import PaddedProgram
from netloop.model.layers.detection import IUniqueLayer
from netloop.model.layers.gather import COMBINED, IGatherLayer, IOneHotLayer, IScatterLayer
from netloop.model.layers.numpy_forms import take, take_positions
from netloop.model.layers.reduce import ICumulativeLayer
from netloop.model.layers.slice import ISliceLayer
from netloop.model.layers.topk import ITopKLayer
from netloop.values.diagnostics import LayerError
from netloop.values.string_arrays import STRING
from tests.support.examples import examples
from tests.support.networks import Op, combine, constant, mark

X = np.float32([3, -1, 4, -1, 5, -9, 2, 6])


def chosen(network, x):
    """Those elements of a vector that are larger than 0, twice as large."""
    found = network.add_non_zero(combine(network, x, constant(network, [0], np.float32), Op.GREATER)).get_output(0)
    indices = network.add_squeeze(found, constant(network, [0], np.int64)).get_output(0)
    taken = network.add_gather(x, indices, 0).get_output(0)
    return combine(network, taken, taken)


def the_largest(network, x, most):
    """The largest of the elements that are larger than 0, at most so many."""
    found = chosen(network, x)
    length = network.add_shape(found).get_output(0)
    size = combine(network, length, constant(network, [most], np.int64), Op.MIN)
    count = network.add_shuffle(size)
    count.reshape_dims = ()
    top = network.add_topk(found, trt.TopKOperation.MAX, 1, 1)
    top.set_input(1, count.get_output(0))
    return top.get_output(0)


def test_new_lengths_compile_nothing(network, compiled):
    mark(network, y=the_largest(network, network.add_input("x", trt.float32, (8,)), 3))
    engine = trt.compile(network)

    assert engine({"x": X})["y"].tolist() == [12, 10, 8]
    del compiled[:]
    assert engine({"x": -X})["y"].tolist() == [18, 2, 2]
    assert engine({"x": np.minimum(X, 3) - 2})["y"].tolist() == [2, 2, 2]
    assert engine({"x": np.zeros(8, np.float32)})["y"].tolist() == []
    assert compiled == []


def test_known_types_are_not_inferred_again(network, monkeypatch):
    mark(network, y=the_largest(network, network.add_input("x", trt.float32, (8,)), 3))
    engine = trt.compile(network)
    engine({"x": X})

    monkeypatch.setattr(HostFrame, "type_table", lambda frame: pytest.fail("types were inferred"))
    assert engine({"x": X + 1})["y"].tolist() == [14, 12, 10]


def test_layers_of_known_shapes_are_one_piece_before_the_others(network, compiled):
    x = network.add_input("x", trt.float32, (8,))
    first, second = chosen(network, x), chosen(network, combine(network, x, x, Op.PROD))
    mark(network, first=first, second=second)

    made = trt.compile(network)({"x": X})
    assert made["first"].tolist() == [6, 8, 10, 4, 12]
    assert made["second"].tolist() == [18, 2, 32, 2, 50, 162, 8, 72]
    assert len(compiled) == 1


@pytest.mark.parametrize(("squares", "programs"), [(1, 0), (2, 1)])
def test_few_layers_at_the_beginning_need_no_program(network, compiled, squares, programs):
    x = network.add_input("x", trt.float32, (8,))
    power = x
    for _ in range(squares):
        power = combine(network, power, power, Op.PROD)
    mark(network, y=chosen(network, power))

    assert trt.compile(network)({"x": X[:1].repeat(8)})["y"].tolist() == [2 * 3 ** (2**squares)] * 8
    assert len(compiled) == programs


def test_layers_of_weights_are_computed_at_load_time(network, compiled):
    """A row of weights that is reshaped is no step of a call."""
    x = network.add_input("x", trt.float32, (8,))
    bias = constant(network, [2], np.float32)
    for _ in range(5):
        bias = network.add_unary(bias, trt.UnaryOperation.NEG).get_output(0)
    mark(network, y=chosen(network, combine(network, x, bias)))

    assert trt.compile(network)({"x": X})["y"].tolist() == [2, 4, 6, 8]
    assert compiled == []


def test_run_warns_of_nothing(network):
    """Layers that numpy computes overflow, and divide by 0, without a warning, which fails a test."""
    x = network.add_input("x", trt.float32, (8,))
    large = chosen(network, x)
    quotient = combine(network, large, combine(network, large, large, Op.SUB), Op.DIV)
    mark(network, y=combine(network, large, large, Op.PROD), quotient=quotient)

    outputs = trt.compile(network)({"x": np.float32([1e30] * 8)})
    assert [outputs[name].tolist() for name in ("y", "quotient")] == [[np.inf] * 8] * 2


@pytest.mark.parametrize("often", [0, 2, 500])
def test_outputs_are_copies_by_a_program_or_without_one(network, monkeypatch, often):
    monkeypatch.setattr(output_arrays, "OFTEN", often)
    monkeypatch.setattr(output_arrays, "MOST_TYPES", 3)
    x = network.add_input("x", trt.int64, (-1,))
    positions = network.add_non_zero(x).get_output(0)
    mark(network, y=network.add_concatenation([x, x]).get_output(0), positions=positions)
    engine = trt.compile(network)
    for length in (1, 2, 2, 2, 2, 3, 4, 2, 2):
        values = np.arange(length) + 2**40
        outputs = engine({"x": values})
        values[:] = 0
        assert outputs["y"].tolist() == [2**40 + index % length for index in range(2 * length)]
        assert outputs["positions"].tolist() == [[*range(length)]]
        kind = type(jax.numpy.zeros(1))
        assert [(type(value), value.dtype) for value in outputs.values()] == [(kind, np.int64), (kind, np.int32)]


def test_outputs_of_new_lengths_compile_nothing(network, caplog):
    x = network.add_input("x", trt.int64, (-1,))
    mark(network, positions=network.add_non_zero(x).get_output(0))
    engine = trt.compile(network)
    engine({"x": np.ones(2, np.int64)})

    with jax.log_compiles():
        shapes = [engine({"x": np.ones(length, np.int64)})["positions"].shape for length in (3, 4, 5)]

    assert (shapes, caplog.records) == ([(1, 3), (1, 4), (1, 5)], [])


def test_large_layers_are_compiled(network, compiled, monkeypatch):
    monkeypatch.setattr("netloop.compiler.host.numpy_layers.MOST_BYTES", 16)
    mark(network, y=chosen(network, network.add_input("x", trt.float32, (8,))))

    assert trt.compile(network)({"x": X})["y"].tolist() == [6, 8, 10, 4, 12]
    assert len(compiled) > 1


def test_index_out_of_range_reads_0_as_in_a_program(network):
    x, data = network.add_input("x", trt.int32, (4,)), network.add_input("data", trt.float32, (3,))
    found = network.add_non_zero(x).get_output(0)
    mark(network, y=network.add_gather(data, found, 0).get_output(0))
    given = {"x": np.int32([1, 0, 1, 1]), "data": np.float32([5, 6, 7])}

    assert trt.compile(network)(given)["y"].tolist() == [[5, 7, 0]]
    with pytest.raises(trt.ExecutionError, match="out of range"):
        trt.evaluate(network, given)


def test_outputs_do_not_share_memory_with_inputs(network):
    x, flags = network.add_input("x", trt.float32, (1, 64)), network.add_input("flags", trt.int32, (4,))
    found = network.add_non_zero(flags).get_output(0)
    size = network.add_gather(network.add_shape(found).get_output(0), constant(network, [1], np.int64), 0).get_output(0)
    part = network.add_slice(network.add_squeeze(x, constant(network, [0], np.int64)).get_output(0), (0,), (1,), (1,))
    part.set_input(2, size)
    mark(network, y=part.get_output(0))
    given = {"x": np.ones((1, 64), np.float32), "flags": np.ones(4, np.int32)}
    made = trt.compile(network)(given)["y"]

    given["x"][:] = 7
    assert made.tolist() == [1, 1, 1, 1]


SMALL = st.integers(0, 2**32)


@examples(60)
@given(seed=SMALL, axis=st.integers(-3, 2), mode=st.sampled_from(["DEFAULT", "ND"]), depth=st.integers(1, 3))
def test_gather_by_numpy_is_that_of_the_reference(seed, axis, mode, depth):
    chance = np.random.default_rng(seed)
    data = chance.integers(0, 99, (2, 3, 4)).astype(np.int32)
    layer, shape = IGatherLayer(mode=trt.GatherMode[mode], axis=axis), (2, depth) if mode == "ND" else (depth, 2)
    indices = chance.integers(-2, 2, shape).astype(np.int64)

    np.testing.assert_array_equal(layer.host_value(data, indices), layer.evaluate(data, indices))


@examples(60)
@given(
    seed=SMALL,
    dtype=st.sampled_from([np.float32, np.float16, np.int32, np.uint8]),
    op=st.sampled_from(list(trt.TopKOperation)),
    shape=st.sampled_from([(40,), (3, 7), (1, 1), (2, 20)]),
    share=st.sampled_from([0.1, 0.5, 1]),
    has_nan=st.booleans(),
)
def test_top_k_by_numpy_is_that_of_the_reference(seed, dtype, op, shape, share, has_nan):
    x = np.random.default_rng(seed).integers(0, 9, shape).astype(dtype)
    if has_nan and np.issubdtype(dtype, np.floating):
        x.flat[:: max(1, x.size // 3)] = np.nan
    layer = ITopKLayer(op=op, k=int(share * shape[-1]), axes=1 << (len(shape) - 1))

    for wanted, made in zip(layer.evaluate(x), layer.host_value(x), strict=True):
        np.testing.assert_array_equal(made, wanted)
        assert made.dtype == wanted.dtype


@examples(60)
@given(
    places=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(-2, 3)), min_size=2, max_size=2),
)
def test_slice_by_numpy_is_that_of_the_reference(places):
    x = np.arange(36, dtype=np.int32).reshape(6, 6)
    starts, sizes, strides = (tuple(entry) for entry in zip(*places, strict=True))
    layer = ISliceLayer(start=starts, shape=sizes, stride=strides)
    ends = [start + (size - 1) * stride for start, size, stride in places]

    if 0 not in sizes and not all(0 <= end < 6 for end in ends):
        with pytest.raises(LayerError):
            layer.host_value(x)
    else:
        np.testing.assert_array_equal(layer.host_value(x), layer.evaluate(x))


@examples(60)
@given(
    op=st.sampled_from(list(trt.CumulativeOperation)),
    axis=st.integers(-2, 1),
    exclusive=st.booleans(),
    reverse=st.booleans(),
    shape=st.sampled_from([(3, 4), (0, 2), (1, 1)]),
)
def test_running_sum_by_numpy_is_that_of_the_reference(op, axis, exclusive, reverse, shape):
    x = np.random.default_rng(0).integers(-9, 9, shape).astype(np.int32)
    layer = ICumulativeLayer(op=op, exclusive=exclusive, reverse=reverse)

    made, wanted = layer.host_value(x, np.int64(axis)), layer.evaluate(x, np.int64(axis))
    np.testing.assert_array_equal(made, wanted)
    assert made.dtype == wanted.dtype


@given(
    seed=st.integers(0, 1 << 20),
    mode=st.sampled_from([*trt.ScatterMode]),
    reduction=st.sampled_from([*COMBINED]),
    axis=st.integers(-2, 1),
    dtype=st.sampled_from(["float32", "float16", "int64", "uint8"]),
)
@examples(60)
def test_scatter_by_numpy_is_that_of_the_reference(seed, mode, reduction, axis, dtype):
    """Indices count from either end, and several updates go to one position."""
    draw = np.random.default_rng(seed)
    data = draw.integers(0, 9, (3, 4)).astype(dtype)
    layer = IScatterLayer(mode=mode, axis=axis, reduction=reduction)
    if mode is trt.ScatterMode.ELEMENT:
        indices = draw.integers(-3, 3, (3, 2))
        updates = draw.integers(0, 9, (3, 2)).astype(dtype)
    else:
        depth = draw.integers(1, 3)
        indices = draw.integers(-3, 3, (5, depth))
        updates = draw.integers(0, 9, (5, 4)[: 3 - depth]).astype(dtype)

    got, meant = layer.host_value(data, indices, updates), layer.evaluate(data, indices, updates)
    np.testing.assert_array_equal(got, meant, strict=True)


@given(st.integers(0, 1 << 20), st.integers(-3, 2), st.sampled_from([(), (4,), (2, 3)]))
@examples(30)
def test_one_hot_by_numpy_is_that_of_the_reference(seed, axis, shape):
    axis = axis % (len(shape) + 1)
    layer, indices = IOneHotLayer(axis=axis), np.random.default_rng(seed).integers(-2, 6, shape)
    values, depth = np.float32([2, 5]), np.int64(4)

    np.testing.assert_array_equal(
        layer.host_value(indices, values, depth), layer.evaluate(indices, values, depth), strict=True
    )


def test_scatter_out_of_range_is_left_to_a_program(network):
    """Its update is dropped there, and an error in the reference."""
    x = network.add_input("x", trt.float32, (8,))
    updates = chosen(network, x)
    places = network.add_cast(combine(network, updates, 4.0, Op.PROD), trt.int32).get_output(0)
    into = network.add_scatter(x, places, updates, trt.ScatterMode.ELEMENT)
    mark(network, y=into.get_output(0))

    assert trt.compile(network)({"x": np.float32([1, 0, 0, 0, 0, 0, 0, 0])})["y"].tolist() == [1, *[0] * 7]
    with pytest.raises(trt.ExecutionError, match="index 8 is out of range"):
        trt.evaluate(network, {"x": np.float32([1, 0, 0, 0, 0, 0, 0, 0])})


def test_layer_of_which_numpy_finds_a_failure_is_an_error_of_the_run(network):
    x = network.add_input("x", trt.float32, (8,))
    length = network.add_shape(chosen(network, x)).get_output(0)
    cut = network.add_slice(x, (0,), (1,), (1,))
    cut.set_input(2, combine(network, length, constant(network, [4], np.int64)))
    mark(network, y=cut.get_output(0))
    engine = trt.compile(network)

    assert engine({"x": -X})["y"].tolist() == (-X)[:7].tolist()
    with pytest.raises(trt.ExecutionError, match="NL601: axis 0 is read from 0 to 8"):
        engine({"x": X})


@pytest.mark.parametrize(("index", "expected"), [(2, 9), (-3, 7), (3, 0), (-4, 0)])
def test_single_element_that_does_not_exist_is_zero(index, expected):
    data = np.float32([7, 8, 9])

    assert take(data, np.array(index), 0).tolist() == expected
    assert take_positions(data, np.array([index])).tolist() == expected


@pytest.mark.parametrize("indices", [1, [0, -1, 1], [[1], [-2]], np.zeros(0, np.int64)])
@pytest.mark.parametrize("axis", [0, 1])
def test_texts_are_gathered_as_by_the_reference(indices, axis):
    texts = np.array([["a", "Ä"], ["", "a text that is longer than others"], ["c", "d"]], STRING)
    layer, places = IGatherLayer(axis=axis, mode=trt.GatherMode.DEFAULT, num_elementwise_dims=0), np.asarray(indices)
    result, wanted = layer.host_value(texts, places), layer.evaluate(texts, places)

    assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
    assert result.tolist() == wanted.tolist()
    with pytest.raises(LayerError, match="index 3 is out of range"):
        layer.host_value(texts, np.array([0, 3]))


@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize(
    ("x", "axis"),
    [
        ([3, 1, 3, -2, 1], 0), ([3, 1, 3, -2, 1], None), ([[3, 1], [1, -2]], None), ([[3, 1], [3, 1]], 0),
        ([True, False, True], None), (np.zeros(0, np.int64), 0), ([0.5, np.nan, 0.5], 0),
    ],
)  # fmt: skip
def test_unique_elements_are_those_of_the_reference(x, axis, is_sorted):
    layer, x = IUniqueLayer(axis=axis, sorted=is_sorted), np.array(x)

    for got, wanted in zip(layer.host_value(x), layer.evaluate(x), strict=True):
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_array_equal(got, wanted)


# ---------------------------------------------------------------------------- layers that are met often


def many_layers(network, x):
    """Those elements of a vector that are larger than 0, after ten layers that keep their number."""
    taken = chosen(network, x)
    for _ in range(5):
        taken = combine(network, combine(network, taken, 2.0, Op.PROD), 1.0, Op.SUB)
    return taken


def expected(x):
    x = 2 * x[x > 0]
    for _ in range(5):
        x = x * 2 - 1
    return x.tolist()


def shifted(seed, count):
    """Eight numbers, of which some are larger than 0."""
    rng = np.random.default_rng(seed)
    return rng.permutation(np.arange(8, dtype=np.float32) - (7 - count))


@pytest.fixture
def often(monkeypatch):
    """The number of calls after which layers are compiled."""
    monkeypatch.setattr("netloop.compiler.host.routes.OFTEN", 3)
    return 3


def test_layers_that_numpy_has_computed_often_are_compiled(network, compiled, often):
    engine = trt.compile(mark(network, y=many_layers(network, network.add_input("x", trt.float32, (8,)))))

    pieces = []
    for call in range(often + 3):
        x = shifted(call, 5)
        assert engine({"x": x})["y"].tolist() == expected(x)
        pieces.append(len(compiled))
    assert pieces == [pieces[0]] * often + [pieces[0] + 1] * 3
    assert compiled[-1] >= 11


def test_lengths_of_a_bucket_count_together_and_share_a_program(network, compiled, often, monkeypatch):
    programs, begin = [], PaddedProgram.__init__
    monkeypatch.setattr(PaddedProgram, "__init__", lambda self, *given: programs.append(given) or begin(self, *given))
    engine = trt.compile(mark(network, y=many_layers(network, network.add_input("x", trt.float32, (8,)))))

    for call in range(6 * often):
        x = shifted(call, 2 + call % 6)
        assert engine({"x": x})["y"].tolist() == expected(x)
    assert len(programs) == 1


def test_lengths_that_no_program_can_share_stay_with_numpy(network, compiled, often):
    x = network.add_input("x", trt.float32, (8,))
    taken = many_layers(network, x)
    backwards = network.add_slice(taken, (0,), (0,), (-1,))
    length = network.add_shape(taken).get_output(0)
    backwards.set_input(1, combine(network, length, constant(network, [1], np.int64), Op.SUB))
    backwards.set_input(2, length)
    first = network.add_shape(network.add_non_zero(backwards.get_output(0)).get_output(0)).get_output(0)
    mark(network, y=backwards.get_output(0), z=first)
    engine = trt.compile(network)

    for call in range(6 * often):
        x = shifted(call, 2 + call % 3)
        assert engine({"x": x})["y"].tolist() == expected(x)[::-1]
    assert len(compiled) < 2 * often


def test_few_layers_are_never_compiled(network, compiled, often):
    engine = trt.compile(mark(network, y=chosen(network, network.add_input("x", trt.float32, (8,)))))

    engine({"x": X})
    del compiled[:]
    for _ in range(3 * often):
        assert engine({"x": X})["y"].tolist() == [6, 8, 10, 4, 12]
    assert compiled == []


def test_integers_that_follow_from_shapes_are_not_computed(network, monkeypatch):
    needed, needed_later = [], Pieces.needed_later
    monkeypatch.setattr(
        Pieces, "needed_later", lambda self, steps: needed.extend(found := needed_later(self, steps)) or found
    )
    x = network.add_input("x", trt.float32, (-1,))
    length = network.add_shape(x).get_output(0)
    total = network.add_reduce(combine(network, length, length), trt.ReduceOperation.SUM, 1, False).get_output(0)
    engine = trt.compile(mark(network, y=chosen(network, x), n=total))

    for count in (8, 5):
        outputs = engine({"x": X[:count]})
        assert int(outputs["n"]) == 2 * count
        assert outputs["y"].tolist() == (2 * X[:count][X[:count] > 0]).tolist()
    assert needed
    assert "n" not in {tensor.name for tensor in needed}
