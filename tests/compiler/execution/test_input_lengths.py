"""Calls whose inputs differ in lengths share programs."""

import jax
import numpy as np
import pytest

import netloop as trt
from netloop.compiler.execution import input_lengths, program_cache
from netloop.compiler.execution.shape_families import ShapeFamily
from netloop.compiler.execution.weight_loading import own_copy
from netloop.compiler.host import padded_pieces
from netloop.compiler.xla_compilation import XlaFunction
from tests.support.examples import many
from tests.support.networks import mark
from tests.support.unknown_lengths import network_of_input_lengths, poisoned

WIDTH = 4
WITHOUT = trt.PASSES.keys() - {"bucketing"}


def step_of_a_decoder(network):
    """Attention of a row to a cache of rows and to itself; the cache with the row is an output."""
    x, cache = network.add_input("x", trt.float32, (1, WIDTH)), network.add_input("cache", trt.float32, (-1, WIDTH))
    mask = network.add_input("mask", trt.float32, (1, -1))
    grown = network.add_concatenation([cache, x])
    grown.axis = 0
    rows, transpose = grown.get_output(0), trt.MatrixOperation.TRANSPOSE
    scores = network.add_matrix_multiply(x, trt.MatrixOperation.NONE, rows, transpose).get_output(0)
    masked = network.add_elementwise(scores, mask, trt.ElementWiseOperation.SUM).get_output(0)
    weights = network.add_softmax(masked)
    weights.axes = 2
    none = trt.MatrixOperation.NONE
    y = network.add_matrix_multiply(weights.get_output(0), none, rows, none).get_output(0)
    return mark(network, y=y, grown=rows)


def step_inputs(length, seed=0):
    draw = np.random.default_rng(seed + length).standard_normal
    arrays = {"x": (1, WIDTH), "cache": (length, WIDTH), "mask": (1, length + 1)}
    return {name: draw(shape).astype(np.float32) for name, shape in arrays.items()}


def agree(engine, network, inputs):
    result = engine(inputs)
    for name, value in trt.evaluate(network, inputs).items():
        np.testing.assert_allclose(np.asarray(result[name]), value, rtol=2e-6, atol=1e-6, strict=True)
        assert isinstance(result[name], jax.Array)


@pytest.fixture
def poison(monkeypatch):
    monkeypatch.setattr(padded_pieces, "_longer", poisoned)


@pytest.fixture
def compiled(monkeypatch):
    """The functions that XLA compiled."""
    functions, original = [], XlaFunction.compile

    def compile(self, *arguments):
        functions.append(self)
        return original(self, *arguments)

    monkeypatch.setattr(XlaFunction, "compile", compile)
    return functions


# ------------------------------------------------------------------ families of shapes


def test_lengths_that_grow_together_keep_their_distance():
    family = ShapeFamily.of([((1, 5), (6,), (3,)), ((1, 7), (8,), (3,))])
    assert family.shapes == ((1, -1), (-1,), (3,))
    assert family.groups == ((((0, 1), 0), ((1, 0), 1)),)
    assert family.has(((1, 20), (21,), (3,)))
    assert not family.has(((1, 20), (20,), (3,)))
    assert not family.has(((2, 20), (21,), (3,)))
    assert family.padded(((1, 20), (21,), (3,))) == ((1, 32), (33,), (3,))


def test_lengths_that_grow_alone_are_padded_alone():
    family = ShapeFamily.of([((4, 5),), ((9, 5),), ((9, 6),)])
    assert len(family.groups) == family.open_count == 2
    assert family.padded(((9, 5),)) == ((16, 8),)


def test_inputs_become_at_most_twice_as_large_unless_they_are_short():
    family = ShapeFamily.of([((64, 64),), ((65, 66),)])
    assert family.padded(((65, 127),)) == ((128, 128),)
    assert family.padded(((65, 66),)) == ((80, 80),)


@pytest.mark.parametrize(("length", "is_shared"), [(0, False), (1, False), (2, True)])
def test_lengths_without_padding_are_not_shared(length, is_shared):
    assert ShapeFamily.of([((3,),), ((4,),)]).is_shared(((length,),)) is is_shared


# ------------------------------------------------------------------ engines


def test_steps_with_a_growing_cache_share_programs(network, poison, compiled):
    engine = trt.compile(step_of_a_decoder(network))
    for length in (*range(11), 15, 16, 17, 20, 31, 32, 33, 39):
        agree(engine, network, step_inputs(length))
    # of 0 and 1 rows, of up to 8, 16, 32 and 64
    assert engine.program_count == len(compiled) == 6
    assert str(engine.notes[-1]) == "bucketing: the program is for inputs up to cache [64, 4], mask [1, 65]"


def test_shapes_that_are_known_compile_nothing(network, compiled):
    engine = trt.compile(step_of_a_decoder(network))
    for length in (3, 4, 5, 6):
        engine(step_inputs(length))
    del compiled[:]
    for length in (5, 7, 3, 8):
        agree(engine, network, step_inputs(length, seed=1))
    assert not compiled


def test_shapes_that_share_programs_displace_none(network, monkeypatch, compiled):
    monkeypatch.setattr(program_cache, "MOST_PROGRAMS", 3)
    engine = trt.compile(step_of_a_decoder(network))
    for length in (1, 3, 4, 5, 6, 7, 8):
        engine(step_inputs(length))
    del compiled[:]
    for length in (1, 3, 4, 5, 6, 7, 8):
        agree(engine, network, step_inputs(length))
    assert not compiled


def test_lengths_used_least_recently_lose_their_program(network, monkeypatch, compiled):
    monkeypatch.setattr(input_lengths, "MOST_SETS", 2)
    monkeypatch.setattr(program_cache, "MOST_SHARED", 1)
    engine = trt.compile(step_of_a_decoder(network))
    for length in (3, 4, 9, 20, 40, 21):
        engine(step_inputs(length))
    del compiled[:]
    for length in (41, 22, 10):
        agree(engine, network, step_inputs(length))
    assert len(compiled) == 1


def test_output_that_is_an_input_is_no_view_of_it(network):
    x = network.add_input("x", trt.float32, (-1,))
    mark(network, x=x, y=network.add_elementwise(x, x, trt.ElementWiseOperation.SUM).get_output(0))
    engine = trt.compile(network)
    for length in (3, 4, 5, 200, 64):
        array = own_copy(np.ones(length, np.float32))
        result = engine({"x": array})
        array[:] = 0
        np.testing.assert_array_equal(result["x"], np.ones(length))


def test_two_sets_of_shapes_have_programs_of_their_own(network):
    engine = trt.compile(step_of_a_decoder(network))
    for length in (3, 4, 3, 4):
        engine(step_inputs(length))
        assert not any(note.by == "bucketing" for note in engine.notes)
    assert engine.program_count == 2


def test_without_the_pass_each_length_has_a_program(network):
    engine = trt.compile(step_of_a_decoder(network), passes=WITHOUT)
    for length in range(3, 8):
        agree(engine, network, step_inputs(length))
    assert engine.program_count == 5


def test_prepared_shapes_have_a_program_of_their_own(network):
    engine = trt.compile(step_of_a_decoder(network))
    for length in (3, 4, 5, 6):
        engine(step_inputs(length))
    engine.executable.prepare(step_inputs(6))
    assert engine.program_count == 4
    agree(engine, network, step_inputs(6))
    assert not any(note.by == "bucketing" for note in engine.notes)


def test_lengths_that_lose_enough_time_get_a_program_of_their_own(network, monkeypatch):
    monkeypatch.setattr(input_lengths, "LOSS", 1e9)
    engine = trt.compile(step_of_a_decoder(network))
    for length in (3, 4, 5, 5):
        engine(step_inputs(length))
    assert engine.notes[-1].by == "bucketing"  # the first call, which may compile, does not count
    agree(engine, network, step_inputs(5))
    assert not any(note.by == "bucketing" for note in engine.notes)


def test_axes_that_vary_one_by_one(network, poison):
    x = network.add_input("x", trt.float32, (-1, -1))
    y = network.add_reduce(x, trt.ReduceOperation.SUM, 2, False).get_output(0)
    engine = trt.compile(mark(network, y=y))
    draw = np.random.default_rng(0)
    for shape in [(2, 3), (2, 4), (2, 5), (3, 5), (4, 6), (5, 7), (6, 3), (2, 6), (9, 20), (0, 5), (5, 0), (1, 1)]:
        agree(engine, network, {"x": draw.integers(-9, 9, shape).astype(np.float32)})


def test_new_weights_reach_shared_programs(network):
    x = network.add_input("x", trt.float32, (-1, 2))
    weights = network.add_constant((2, 2), np.eye(2, dtype=np.float32))
    none = trt.MatrixOperation.NONE
    y = network.add_matrix_multiply(x, none, weights.get_output(0), none).get_output(0)
    weights.name = "w"
    engine = trt.compile(mark(network, y=y))
    for rows in (2, 3, 4):
        engine({"x": np.ones((rows, 2), np.float32)})
    refitter = trt.Refitter(engine, trt.Logger())
    refitter.set_named_weights("w", np.full((2, 2), 3, np.float32))
    assert refitter.refit_cuda_engine()
    assert np.asarray(engine({"x": np.ones((4, 2), np.float32)})["y"]).tolist() == [[6, 6]] * 4
    assert engine.program_count == 3


def test_layer_that_needs_its_length_keeps_programs_of_its_own(network):
    x = network.add_input("x", trt.float32, (-1,))
    y = network.add_fill((-1,), trt.FillOperation.RANDOM_UNIFORM)
    y.set_input(0, network.add_shape(x).get_output(0))
    engine = trt.compile(mark(network, y=y.get_output(0)))
    for length in (2, 3, 4, 5):
        assert engine({"x": np.ones(length, np.float32)})["y"].shape == (length,)
    assert engine.program_count == 4


def test_sizes_that_are_computed_from_lengths(network, poison, compiled):
    """Positions from the length of the cache on, and a mask of a table, as exporters write them."""
    x, cache = network.add_input("x", trt.float32, (-1, 2)), network.add_input("cache", trt.float32, (-1, 2))
    grown = network.add_concatenation([cache, x])
    grown.axis = 0
    before, after = network.add_shape(cache).get_output(0), network.add_shape(grown.get_output(0)).get_output(0)
    first = network.add_constant((1,), np.int64([0])).get_output(0)
    start, end = (network.add_gather(shape, first, 0).get_output(0) for shape in (before, after))
    rows = network.add_elementwise(end, start, trt.ElementWiseOperation.SUB).get_output(0)
    table = network.add_constant((40, 40), np.tril(np.ones((40, 40), np.float32))).get_output(0)
    corner, size = (network.add_concatenation(pair).get_output(0) for pair in ([start, first], [rows, end]))
    mask = network.add_slice(table, (0, 0), (0, 0), (1, 1))
    mask.set_input(1, corner)
    mask.set_input(2, size)
    numbers = network.add_fill((-1,), trt.FillOperation.LINSPACE, trt.int64)
    zero, one = network.add_constant((), np.int64([0])), network.add_constant((1,), np.int64([1]))
    for position, tensor in enumerate((end, zero.get_output(0), one.get_output(0))):
        numbers.set_input(position, tensor)
    engine = trt.compile(mark(network, mask=mask.get_output(0), numbers=numbers.get_output(0)))
    for length in (2, 3, 4, 9, 30, 37):
        agree(engine, network, {"x": np.ones((3, 2), np.float32), "cache": np.ones((length, 2), np.float32)})
    # of 2 and 3 rows, of up to 8, 16 and 32; 64 and 48 rows are not in the table
    assert len(compiled) == 6


def test_mask_of_a_batch_that_is_read_by_positions(network, poison, compiled):
    """As exporters write ``mask[rows, columns]``: of the flat mask, at row * length + column."""
    mask = network.add_input("mask", trt.float32, (2, -1))

    def reshaped(x, *dims):
        layer = network.add_shuffle(x)
        layer.reshape_dims = dims
        return layer.get_output(0)

    def combined(a, b, operation):
        return network.add_elementwise(a, b, operation).get_output(0)

    def constant(shape, *values):
        return network.add_constant(shape, np.int64(values)).get_output(0)

    length = network.add_gather(network.add_shape(mask).get_output(0), constant((1,), 1), 0).get_output(0)
    columns = network.add_fill((-1,), trt.FillOperation.LINSPACE, trt.int64)
    for position, tensor in enumerate(
        (length, network.add_constant((), np.int64([0])).get_output(0), constant((1,), 1))
    ):
        columns.set_input(position, tensor)
    rows = combined(constant((2, 1), 0, 1), reshaped(length, 1, 1), trt.ElementWiseOperation.PROD)
    places = combined(rows, reshaped(columns.get_output(0), 1, -1), trt.ElementWiseOperation.SUM)
    elements = network.add_gather(reshaped(mask, -1, 1), places, 0).get_output(0)
    shape = network.add_concatenation([constant((2,), 2, 1), length]).get_output(0)
    result = network.add_shuffle(reshaped(elements, -1))
    result.set_input(1, shape)
    engine = trt.compile(mark(network, y=result.get_output(0)))

    for length in (2, 3, 4, 9, 30, 37):
        agree(engine, network, {"mask": np.arange(2 * length, dtype=np.float32).reshape(2, length)})
    # of 2 and 3 columns, of up to 8, 16, 32 and 64
    assert len(compiled) == 6


def test_slice_that_ends_with_its_table(network, compiled):
    """The padded slice ends behind the table, and still begins where the exact one does."""
    x, at = network.add_input("x", trt.float32, (-1,)), network.add_input("at", trt.int64, (1,))
    table = network.add_constant((24,), np.arange(24, dtype=np.float32)).get_output(0)
    layer = network.add_slice(table, (0,), (0,), (1,))
    layer.set_input(1, at)
    layer.set_input(2, network.add_shape(x).get_output(0))
    engine = trt.compile(mark(network, y=layer.get_output(0)))
    for length in (2, 3, 9, 10):
        agree(engine, network, {"x": np.ones(length, np.float32), "at": np.int64([24 - length])})
    assert len(compiled) == 3


def test_sizes_that_fall_as_lengths_grow_are_not_cut(network):
    x = network.add_input("x", trt.float32, (-1,))
    most = network.add_constant((1,), np.int64([64])).get_output(0)
    rest = network.add_elementwise(most, network.add_shape(x).get_output(0), trt.ElementWiseOperation.SUB)
    layer = network.add_fill((-1,), trt.FillOperation.LINSPACE)
    layer.set_input(0, rest.get_output(0))
    engine = trt.compile(mark(network, y=layer.get_output(0)))
    for length in (2, 3, 9, 16, 10):
        agree(engine, network, {"x": np.ones(length, np.float32)})


def test_number_that_differs_from_those_of_the_first_calls(network):
    """A sum along axis 0 for even numbers of rows, and along axis 1 for odd ones."""
    x = network.add_input("x", trt.float32, (-1, 3))
    zero, two = (network.add_constant((), np.int64(number)).get_output(0) for number in (0, 2))
    rows = network.add_gather(network.add_shape(x).get_output(0), zero, 0).get_output(0)
    half = network.add_elementwise(rows, two, trt.ElementWiseOperation.FLOOR_DIV).get_output(0)
    even = network.add_elementwise(half, two, trt.ElementWiseOperation.PROD).get_output(0)
    axis = network.add_elementwise(rows, even, trt.ElementWiseOperation.SUB).get_output(0)
    y = network.add_cumulative(x, axis, trt.CumulativeOperation.SUM, False, False).get_output(0)
    engine = trt.compile(mark(network, y=y))
    for length in (2, 4, 6, 7, 8):
        agree(engine, network, {"x": np.arange(3 * length, dtype=np.float32).reshape(length, 3)})


def test_length_that_fits_no_table_when_padded(network):
    """A table of 12 positions has no 16."""
    x = network.add_input("x", trt.float32, (-1, 2))
    table = network.add_constant((12, 2), np.arange(24, dtype=np.float32)).get_output(0)
    positions = network.add_slice(table, (0, 0), (1, 2), (1, 1))
    positions.set_input(2, network.add_shape(x).get_output(0))
    y = network.add_elementwise(x, positions.get_output(0), trt.ElementWiseOperation.SUM).get_output(0)
    engine = trt.compile(mark(network, y=y))
    for length in (2, 3, 4, 9, 11):
        agree(engine, network, {"x": np.ones((length, 2), np.float32)})
    with pytest.raises(trt.NetworkError, match="NL401"):
        engine({"x": np.ones((13, 2), np.float32)})


def test_length_that_does_not_fit_a_constant_is_the_error_of_a_network(network):
    """The sum has 12 rows for each length that is valid, so that its type does not tell the others."""
    x = network.add_input("x", trt.float32, (-1, 4))
    table = network.add_constant((12, 4), np.ones((12, 4), np.float32)).get_output(0)
    y = network.add_elementwise(x, table, trt.ElementWiseOperation.SUM).get_output(0)
    engine = trt.compile(mark(network, y=y))
    for length in (1, 12):
        agree(engine, network, {"x": np.ones((length, 4), np.float32)})
    with pytest.raises(trt.NetworkError, match="NL401"):
        engine({"x": np.ones((5, 4), np.float32)})


def test_network_on_the_host_shares_its_pieces(network, poison, compiled):
    """The branches have caches of different lengths, which only the run knows."""
    decides = network.add_input("decides", trt.bool, ())
    x, cache = network.add_input("x", trt.float32, (1, WIDTH)), network.add_input("cache", trt.float32, (-1, WIDTH))
    conditional = network.add_if_conditional()
    conditional.set_condition(decides)
    grown = network.add_concatenation([cache, x])
    grown.axis = 0
    state = conditional.add_output(grown.get_output(0), x).get_output(0)
    weights = network.add_softmax(state)
    weights.axes = 1
    engine = trt.compile(mark(network, y=weights.get_output(0), state=state))
    for length in (0, 1, 2, 3, 4, 5, 6, 7, 8):
        cache = np.random.default_rng(length).standard_normal((length, WIDTH)).astype(np.float32)
        agree(engine, network, {"decides": np.bool_(length), "x": np.ones((1, WIDTH), np.float32), "cache": cache})
    assert len(compiled) < 9


def test_arrays_of_a_device_with_memory_of_its_own_stay_there():
    array = jax.numpy.arange(6.0).reshape(2, 3)
    longer = padded_pieces._resized(array, (2, 5))
    assert longer.tolist() == [[0, 1, 2, 0, 0], [3, 4, 5, 0, 0]]
    assert padded_pieces._resized(longer, (1, 2)).tolist() == [[0, 1]]


def test_slice_past_the_end_of_a_table_fails_also_among_lengths_that_share_programs(network, poison):
    x = network.add_input("x", trt.float32, (-1,))
    first = network.add_constant((1,), np.int32([0])).get_output(0)
    length = network.add_gather(network.add_shape(x).get_output(0), first, 0).get_output(0)
    table = network.add_constant((24,), np.arange(24, dtype=np.float32)).get_output(0)
    rows = network.add_slice(table, (0,), (1,), (1,))
    rows.set_input(1, length)
    rows.set_input(2, length)
    y = network.add_elementwise(x, rows.get_output(0), trt.ElementWiseOperation.SUM).get_output(0)
    engine = trt.compile(mark(network, y=y))

    for number in (3, 5, 9, 10, 11, 12):
        agree(engine, network, {"x": np.zeros(number, np.float32)})
    for run in (engine, lambda inputs: trt.evaluate(network, inputs)):
        with pytest.raises(trt.NetworkError, match="axis 0 is read from 13 to 25, and has 24 elements"):
            run({"x": np.zeros(13, np.float32)})


# ------------------------------------------------------------------ random networks

FEW = 2


@pytest.fixture
def shared_early(monkeypatch, poison):
    monkeypatch.setattr(input_lengths, "FEWEST", 1)


def random_network_agrees(number):
    saved = network_of_input_lengths(number)
    engine = trt.compile(saved.network)
    for inputs in saved.calls:
        result = engine(inputs)
        for name, value in trt.evaluate(saved.network, inputs).items():
            np.testing.assert_array_equal(np.asarray(result[name]), value, f"{name} of {saved}", strict=True)


@pytest.mark.parametrize("number", range(FEW))
def test_random_lengths_of_inputs_agree_with_the_reference(number, shared_early):
    random_network_agrees(number)


@pytest.mark.slow
@pytest.mark.parametrize("number", many(40, FEW))
def test_many_random_lengths_of_inputs_agree_with_the_reference(number, shared_early):
    random_network_agrees(number)
