import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import netloop
from netloop.model.layers.slice import ELEMENTS, PLACES, ISliceLayer
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import LayerError, NetworkError
from netloop.values.enums import DataType, SampleMode
from netloop.values.types import TensorType, numpy_type
from tests.support.examples import examples
from tests.support.laws import Case, check_laws, refuses

STRICT, WRAP, CLAMP, FILL, REFLECT = (
    SampleMode.STRICT_BOUNDS,
    SampleMode.WRAP,
    SampleMode.CLAMP,
    SampleMode.FILL,
    SampleMode.REFLECT,
)
E8M0 = numpy_type(DataType.E8M0)
ROW = np.float32([10, 11, 12, 13, 14])
GRID = np.arange(12, dtype=np.float32).reshape(3, 4)
CUBE = np.arange(24, dtype=np.int32).reshape(2, 3, 4)


def i64(*numbers):
    return np.array(numbers, np.int64)


def i32(*numbers):
    return np.array(numbers, np.int32)


def cut(start=(), shape=(), stride=(), **named):
    return ISliceLayer(start=start, shape=shape, stride=stride, **named)


def row(start, size, stride, mode):
    return cut((start,), (size,), (stride,), mode=mode)


BOX = (GRID, i64(1, 1), i64(2, 2), i64(1, 2))
NONE = np.zeros((0,), np.int64)

CASES = [
    Case("a box", cut((1, 0), (2, 3), (1, 1)), (GRID,), GRID[1:3, 0:3]),
    Case("shape is no end", cut((1,), (2,), (1,)), (ROW,), np.float32([11, 12])),
    Case("every other element", cut((0, 1), (2, 2), (2, 2)), (GRID,), GRID[::2, 1::2]),
    Case("backwards", cut((4,), (5,), (-1,)), (ROW,), ROW[::-1]),
    Case("backwards by two", cut((4,), (3,), (-2,)), (ROW,), ROW[::-2]),
    Case("the same element", cut((2,), (3,), (0,)), (ROW,), np.float32([12, 12, 12])),
    Case("the whole", cut((0, 0), (3, 4), (1, 1)), (GRID,), GRID),
    Case("rank 0", cut(), (np.float32(7),), np.float32(7)),
    Case("an empty output", cut((9, 0), (0, 4), (1, 1)), (GRID,), np.zeros((0, 4), np.float32)),
    Case("empty along one axis reads nothing along the other", cut((0, 9), (0, 4), (1, 1)), (GRID,), GRID[:0]),
    Case("empty of empty", cut((0,), (0,), (1,), mode=WRAP), (ROW[:0],), ROW[:0]),
    Case("one axis of three", cut((1,), (2,), (1,), axes=(1,)), (CUBE,), CUBE[:, 1:3]),
    Case("negative axes", cut((3, 0), (2, 1), (-2, 1), axes=(-1, -3)), (CUBE,), CUBE[:1, :, 3:0:-2]),
    Case("no axes", cut(axes=()), (CUBE,), CUBE),
    Case("start as input", cut((9,), (2,), (1,)), (ROW, i32(2)), np.float32([12, 13])),
    Case("start, size and stride as inputs", cut(), BOX, GRID[1:3, 1:4:2]),
    Case("size as input", cut((1, 1), (7, 7), (1, 2)), (GRID, None, i32(2, 2)), GRID[1:3, 1:4:2]),
    Case("stride as input", cut((4,), (3,), (1,)), (ROW, None, None, i64(-2)), ROW[::-2]),
    Case("axes as input", cut((1,), (2,), (1,)), (CUBE, None, None, None, None, i32(-2)), CUBE[:, 1:3]),
    Case(
        "start and axes as inputs",
        cut((), (2, 1), (1, 1)),
        (CUBE, i64(2, 1), None, None, None, i64(2, 0)),
        CUBE[1:2, :, 2:4],
    ),
    Case("int32 start of one axis as input", cut((), (2,), (1,), axes=(1,)), (CUBE, i32(1)), CUBE[:, 1:3]),
    Case("start of no axes as input", cut(), (np.float32(7), NONE, NONE, NONE), np.float32(7)),
    Case("moving start, backwards", cut((), (3,), (-2,)), (ROW, i64(4)), ROW[::-2]),
    Case("wrap", row(-2, 9, 1, WRAP), (ROW,), np.float32([13, 14, 10, 11, 12, 13, 14, 10, 11])),
    Case("wrap backwards", row(1, 4, -3, WRAP), (ROW,), np.float32([11, 13, 10, 12])),
    Case("clamp", row(-2, 9, 1, CLAMP), (ROW,), np.float32([10, 10, 10, 11, 12, 13, 14, 14, 14])),
    Case("clamp backwards", row(6, 4, -3, CLAMP), (ROW,), np.float32([14, 13, 10, 10])),
    Case("fill", row(-2, 9, 1, FILL), (ROW,), np.float32([0, 0, 10, 11, 12, 13, 14, 0, 0])),
    Case("fill backwards", row(6, 4, -1, FILL), (ROW,), np.float32([0, 0, 14, 13])),
    Case("fill by threes", row(-3, 4, 3, FILL), (ROW,), np.float32([0, 10, 13, 0])),
    Case("fill far away", row(20, 2, 1, FILL), (ROW,), np.float32([0, 0])),
    Case("fill of nothing", row(-1, 2, 1, FILL), (ROW[:0],), np.float32([0, 0])),
    Case("fill of a type without zero", row(4, 3, 1, FILL), (np.ones(5, E8M0),), np.uint8([127, 0, 0]).view(E8M0)),
    Case("fill with a value", row(4, 3, 1, FILL), (ROW, None, None, None, np.float32(-1)), np.float32([14, -1, -1])),
    Case("fill with one of an axis", row(5, 1, 1, FILL), (ROW, None, None, None, np.float32([-1])), np.float32([-1])),
    Case(
        "fill of nothing with a value from a moving start",
        row(0, 2, 1, FILL),
        (ROW[:0], i64(3), None, None, np.float32(5)),
        np.float32([5, 5]),
    ),
    Case(
        "fill in two directions",
        cut((-1, 3), (3, 2), (1, 1), mode=FILL),
        (GRID, None, None, None, np.float32(9)),
        np.float32([[9, 9], [3, 9], [7, 9]]),
    ),
    Case(
        "fill in two directions from a moving start",
        cut((), (3, 2), (1, 1), mode=FILL),
        (GRID, i64(-1, 3), None, None, np.float32(9)),
        np.float32([[9, 9], [3, 9], [7, 9]]),
    ),
    Case("reflect", row(-3, 12, 1, REFLECT), (ROW,), np.float32([13, 12, 11, 10, 11, 12, 13, 14, 13, 12, 11, 10])),
    Case("reflect of one element", row(-2, 5, 2, REFLECT), (ROW[:1],), np.float32([10] * 5)),
    Case("reflect of two elements", row(-1, 4, 1, REFLECT), (ROW[:2],), np.float32([11, 10, 11, 10])),
    Case("moving wrap", row(0, 3, 1, WRAP), (ROW, i64(-1)), np.float32([14, 10, 11])),
    Case("moving clamp", row(0, 3, 1, CLAMP), (ROW, i32(-1)), np.float32([10, 10, 11])),
    Case("moving fill", row(0, 3, 1, FILL), (ROW, i64(-1)), np.float32([0, 10, 11])),
    Case("moving reflect", row(0, 3, 1, REFLECT), (ROW, i64(-1)), np.float32([11, 10, 11])),
    Case("moving stride", row(1, 3, 1, REFLECT), (ROW, None, None, i32(3)), np.float32([11, 14, 11])),
    Case("moving stride of 0", row(1, 3, 1, STRICT), (ROW, None, None, i32(0)), np.float32([11, 11, 11])),
    *(
        Case(f"fill of {np.dtype(dtype)}", row(1, 3, 1, FILL), (np.array([0, 1], dtype),), np.array([1, 0, 0], dtype))
        for dtype in (np.float16, jnp.bfloat16, np.float64, np.int8, np.uint8, np.int64, np.bool_)
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_laws(case):
    check_laws(case)


@pytest.mark.parametrize("table", [PLACES, ELEMENTS])
def test_every_mode_has_a_row(table):
    assert set(table) == set(SampleMode)


def elsewhere(mode, place, length):
    """The index of the element that a slice reads at ``place``, by numpy's padding; None for the fill value."""
    if mode is STRICT or 0 <= place < length:
        return place
    width = abs(place) + 1
    names = {WRAP: "wrap", CLAMP: "edge", REFLECT: "reflect"}
    if mode is FILL:
        return None
    return int(np.pad(np.arange(length), width, mode=names[mode])[place + width])


@st.composite
def slices(draw):
    mode = draw(st.sampled_from([WRAP, CLAMP, FILL, REFLECT]))
    lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    small = st.integers(-7, 7)
    per_axis = [(draw(small), draw(st.integers(0, 4)), draw(st.integers(-3, 3))) for _ in lengths]
    return mode, lengths, *zip(*per_axis, strict=True), draw(st.booleans())


@examples(30)
@given(slices())
def test_slice_reads_where_numpy_pads(drawn):
    mode, lengths, start, size, stride, moving = drawn
    x = np.arange(np.prod(lengths), dtype=np.int32).reshape(lengths)
    places = [
        [elsewhere(mode, a + o * s, length) for o in range(n)]
        for a, n, s, length in zip(start, size, stride, lengths, strict=True)
    ]
    wanted = np.full(size, -1, np.int32)
    for index in np.ndindex(*size):
        source = tuple(along[o] for along, o in zip(places, index, strict=True))
        if None not in source:
            wanted[index] = x[source]
    inputs = (i64(*start), None, i64(*stride)) if moving else (None, None, None)

    check_laws(Case("drawn", cut(start, size, stride, mode=mode), (x, *inputs, np.int32(-1)), wanted))


@examples(25)
@given(
    st.integers(1, 6), st.integers(0, 5), st.integers(1, 6), st.sampled_from([-3, -2, -1, 0, 1, 2, 3]), st.booleans()
)
def test_slice_within_bounds_is_indexing(length, start, size, stride, moving):
    places = start + stride * np.arange(size)
    x = np.arange(2 * length, dtype=np.float32).reshape(2, length)
    layer = cut((start,), (size,), (stride,), axes=(1,))
    if places.min() < 0 or places.max() >= length:
        with pytest.raises(LayerError):
            layer.evaluate(x)
    else:
        check_laws(Case("drawn", layer, (x, i64(start) if moving else None), x[:, places]))


def f32(*shape):
    return TensorType(np.dtype(np.float32), shape)


def index(*shape):
    return TensorType(np.dtype(np.int64), shape)


def test_unknown_size_gives_unknown_lengths():
    layer = cut((0, 0), (), (1, 1))

    assert layer.infer(f32(3, 4), None, index(2)).shape == (-1, -1)


def test_axes_that_are_not_sliced_keep_their_length():
    layer = cut((0,), (), (1,), axes=(1,))

    assert layer.infer(f32(3, 4), None, index(1)).shape == (3, -1)


def test_unknown_input_length_leaves_the_output_known():
    assert cut((5,), (2,), (1,)).infer(f32(-1)).shape == (2,)


def test_unknown_length_of_an_unsliced_axis_stays_unknown():
    assert cut((1,), (2,), (1,), axes=(1,)).infer(f32(-1, 3)).shape == (-1, 2)


def test_unknown_axes_leave_every_length_unknown():
    assert cut((1,), (2,), (1,)).infer(f32(3, 3), axes=index(1)).shape == (-1, -1)


def test_unknown_number_of_starts_is_no_error():
    assert cut((), (2,), (1,)).infer(f32(3), index(-1)).shape == (2,)


def test_reading_past_the_end_is_refused_with_the_numbers():
    refuses(cut((0, 3), (2, 3), (1, 2)), GRID, match="axis 1 is read from 3 to 7, and has 4 elements")


def test_reading_past_the_end_is_refused_with_the_modes_that_would_do():
    with pytest.raises(LayerError) as caught:
        cut((3,), (3,), (1,)).infer(f32(5))

    assert caught.value.fix.startswith("set mode to CLAMP, FILL, REFLECT or WRAP")


def test_reading_before_the_start_is_refused():
    refuses(cut((1,), (3,), (-1,)), ROW, match="axis 0 is read from 1 to -1, and has 5 elements")


def test_reading_before_the_start_of_an_unknown_length_is_refused():
    refuses(cut((-1,), (1,), (1,)), f32(-1), match="axis 0 is read from -1 to -1, and has an unknown number")


def test_reading_more_than_there_is_from_an_unknown_start_is_refused():
    refuses(cut((), (6,), (1,)), ROW, index(1), match="axis 0 is read from 0 to 5 at best, and has 5 elements")


def test_reading_backwards_more_than_there_is_from_an_unknown_start_is_refused():
    refuses(cut((), (4,), (-2,)), ROW, index(1), match="axis 0 is read from 6 to 0 at best, and has 5 elements")


def test_start_past_the_end_is_refused_whatever_the_stride():
    refuses(cut((5,), (2,), ()), ROW, None, None, index(1), match="axis 0 is read from 5 to 5 at best")


def test_evaluating_past_the_end_is_refused():
    with pytest.raises(LayerError, match="axis 0 is read from 4 to 5, and has 5 elements"):
        cut((), (2,), (1,)).evaluate(ROW, i64(4))


@pytest.mark.parametrize("mode", [WRAP, CLAMP, REFLECT])
def test_empty_axis_has_nothing_to_read_instead(mode):
    refuses(row(0, 2, 1, mode), ROW[:0], match="axis 0 has 0 elements")


def test_negative_size_is_refused():
    refuses(cut((0,), (-1,), (1,)), ROW, match="shape (-1,) has a negative dim")


def test_start_of_another_length_is_refused():
    refuses(cut((0,), (1, 1), (1, 1)), GRID, match="start has 1 numbers, and 2 axes are sliced")


def test_size_input_of_another_length_is_refused():
    refuses(cut((0, 0), (), (1, 1)), GRID, None, i64(1), match="shape has 1 numbers, and 2 axes are sliced")


def test_stride_of_floats_is_refused():
    refuses(cut((0,), (1,), ()), ROW, None, None, f32(1), match="stride is 1-D, int32 or int64, not float32[1]")


def test_start_of_rank_0_is_refused():
    refuses(cut((), (1,), (1,)), ROW, index(), match="start is 1-D, int32 or int64, not int64[]")


def test_fill_value_of_another_type_is_refused():
    refuses(row(0, 1, 1, FILL), ROW, None, None, None, np.array(0, np.int32), match="the fill value is int32[]")


def test_several_fill_values_are_refused():
    refuses(row(0, 1, 1, FILL), ROW, None, None, None, f32(2), match="but must be float32[]")


def test_axis_that_is_not_there_is_refused():
    refuses(cut((0,), (1,), (1,), axes=(2,)), GRID, match="axis 2 is not one of the 2 axes")


def test_axis_named_twice_is_refused():
    refuses(cut((0, 0), (1, 1), (1, 1), axes=(1, -1)), GRID, match="axes (1, -1) list an axis twice")


def test_axes_of_floats_are_refused():
    refuses(cut((0,), (1,), (1,)), GRID, None, None, None, None, f32(1), match="the axes are 1-D, int32 or int64")


@pytest.mark.parametrize(
    ("layer", "inputs", "wanted"),
    [
        (row(0, 2, 2, STRICT), (), [1, 0, 1]),
        (row(0, 2, 1, STRICT), (i64(1),), [0, 1, 1]),
        (row(-1, 5, 1, CLAMP), (), [2, 1, 2]),
        (row(-1, 5, 1, FILL), (), [1, 1, 1]),
        (row(-1, 5, 1, WRAP), (i64(-1),), [2, 1, 2]),
        (row(-1, 5, 1, REFLECT), (), [1, 3, 1]),
        (row(0, 2, 1, FILL), (i64(2),), [0, 0, 1]),
    ],
)
def test_gradient_counts_how_often_each_element_is_read(layer, inputs, wanted):
    found = jax.grad(lambda x: layer.lower(x, *(jnp.asarray(tensor) for tensor in inputs)).sum())(jnp.arange(3.0))

    np.testing.assert_array_equal(found, wanted)


def test_gradient_of_the_fill_value_counts_the_filled_places():
    layer = row(-1, 5, 1, FILL)

    assert jax.grad(lambda fill: layer.lower(jnp.arange(3.0), None, None, None, fill).sum())(0.0) == 2


def test_slice_of_a_fixed_box_is_no_gather():
    text = str(jax.make_jaxpr(cut((2, 3), (2, 2), (-1, -2)).lower)(GRID))

    assert "gather" not in text


def test_slice_by_one_from_a_moving_start_is_one_dynamic_slice():
    text = str(jax.make_jaxpr(cut((), (2, 2), (1, 1)).lower)(GRID, jnp.array([0, 1])))

    assert text.count("dynamic_slice") == 1
    assert "gather" not in text


def test_network_slices():
    network = INetworkDefinition()
    x = network.add_input("x", DataType.FLOAT, (3, 4))
    made = network.add_slice(x, (0, 1), (3, 2), (1, 2))

    assert made.get_output(0).shape == (3, 2)


def test_size_as_an_input_wins_until_the_shape_is_set():
    network = INetworkDefinition()
    x = network.add_input("x", DataType.FLOAT, (3, 4))
    made = network.add_slice(x, (0, 0), (1, 1), (1, 1))
    made.set_input(2, network.add_constant((2,), i64(2, 3)).get_output(0))

    assert made.get_output(0).shape == (2, 3)
    made.shape = (3, 3)
    assert made.get_output(0).shape == (3, 3)
    assert made.get_input(2) is None


def test_mode_set_later_mends_the_network():
    network = INetworkDefinition()
    x = network.add_input("x", DataType.FLOAT, (3,))
    made = network.add_slice(x, (0,), (5,), (1,))

    with pytest.raises(NetworkError, match="axis 0 is read from 0 to 4, and has 3 elements"):
        _ = made.get_output(0).shape
    made.mode = CLAMP
    assert made.get_output(0).shape == (5,)


def test_slice_of_a_known_shape_is_known():
    network = INetworkDefinition()
    x = network.add_input("x", DataType.FLOAT, (3, 4))
    shape = network.add_shape(x).get_output(0)
    made = network.add_slice(shape, (1,), (1,), (1,)).get_output(0)

    assert made.type.ints() == [4]


@pytest.mark.parametrize("mode", [SampleMode.FILL, SampleMode.CLAMP, SampleMode.WRAP, SampleMode.REFLECT])
def test_positions_beyond_64_bits_are_refused(mode):
    match = "axis 0 is read from 4611686018427387904 to 18446744073709551616"

    refuses(cut((2**62,), (4,), (2**62,), mode=mode), f32(5), match=match)


@pytest.mark.parametrize("stride", [-(2**63), -(2**62), 2**63 - 4])
def test_stride_of_one_element_may_be_any_number(stride):
    network = INetworkDefinition()
    read = network.add_slice(network.add_input("x", DataType.FLOAT, (5,)), (3,), (1,), (stride,))
    network.mark_output(read.get_output(0))

    assert [value.tolist() for value in netloop.compile(network)({"x": ROW}).values()] == [[13]]


def test_positions_in_a_long_axis_are_no_constant_of_the_program():
    layer = cut((0,), (2**21,), (3,), mode=SampleMode.WRAP)

    with jax.enable_x64(True):
        assert len(jax.jit(layer.lower).lower(jax.ShapeDtypeStruct((5,), np.float32)).as_text()) < 2**16


def test_long_slice_wraps_like_a_short_one():
    layer, x = cut((0,), (2**21,), (3,), mode=SampleMode.WRAP), np.arange(5, dtype=np.float32)

    with jax.enable_x64(True):
        np.testing.assert_array_equal(layer.lower(x), x[np.arange(2**21) * 3 % 5])
