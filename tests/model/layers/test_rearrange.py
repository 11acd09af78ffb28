import jax
import jax.numpy as jnp
import numpy as np
import pytest

from netloop.model.layers.rearrange import IConcatenationLayer, IShuffleLayer, ISqueezeLayer, IUnsqueezeLayer
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import LayerError, NetworkError
from netloop.values.enums import DataType
from netloop.values.types import TensorType
from tests.support.laws import Case, check_laws, refuses

GRID = np.arange(6, dtype=np.float32).reshape(2, 3)
CUBE = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
ONES = np.arange(6, dtype=np.float32).reshape(1, 2, 1, 3, 1)
DTYPES = [np.float32, np.float16, jnp.bfloat16, np.float64, np.int8, np.uint8, np.int32, np.int64, np.bool_]


def shuffle(reshape_dims=None, first=None, second=None, **named):
    return IShuffleLayer(first_transpose=first, reshape_dims=reshape_dims, second_transpose=second, **named)


def concatenation(axis):
    return IConcatenationLayer(axis=axis)


def i64(*numbers):
    return np.array(numbers, np.int64)


def i32(*numbers):
    return np.array(numbers, np.int32)


def f32(*shape):
    return TensorType(np.dtype(np.float32), shape)


def index(*shape):
    return TensorType(np.dtype(np.int64), shape)


CASES = [
    Case("nothing", shuffle(), (GRID,), GRID),
    Case("transposed", shuffle(first=(1, 0)), (GRID,), np.float32([[0, 3], [1, 4], [2, 5]])),
    Case("axes go around", shuffle(first=(2, 0, 1)), (CUBE,), np.moveaxis(CUBE, 2, 0)),
    Case("reshaped", shuffle((3, 2)), (GRID,), np.float32([[0, 1], [2, 3], [4, 5]])),
    Case("transposed then reshaped", shuffle((6,), first=(1, 0)), (GRID,), np.float32([0, 3, 1, 4, 2, 5])),
    Case("reshaped then transposed", shuffle((3, 2), second=(1, 0)), (GRID,), np.float32([[0, 2, 4], [1, 3, 5]])),
    Case(
        "transposed, reshaped, transposed",
        shuffle((2, 3), first=(1, 0), second=(1, 0)),
        (GRID,),
        np.float32([[0, 4], [3, 2], [1, 5]]),
    ),
    Case("second transposition alone", shuffle(second=(1, 0)), (GRID,), np.float32([[0, 3], [1, 4], [2, 5]])),
    Case("the rest", shuffle((-1, 2)), (GRID,), GRID.reshape(3, 2)),
    Case("a copied length", shuffle((0, 1, 3)), (GRID,), GRID.reshape(2, 1, 3)),
    Case(
        "a length copied from the transposed input",
        shuffle((0, -1), first=(2, 0, 1)),
        (CUBE,),
        CUBE.T.swapaxes(1, 2).reshape(4, 6),
    ),
    Case("two copied lengths with the rest", shuffle((0, 0, 2, -1)), (CUBE,), CUBE.reshape(2, 3, 2, 2)),
    Case("an empty copy with the rest", shuffle((0, -1)), (CUBE[:0],), np.zeros((0, 12), np.int32)),
    Case("an empty copy of another length", shuffle((0, 5)), (GRID[:0],), np.zeros((0, 5), np.float32)),
    Case("an empty length", shuffle((3, 0), zero_is_placeholder=False), (GRID[:0],), np.zeros((3, 0), np.float32)),
    Case("nothing for the rest", shuffle((4, -1)), (GRID[:0],), np.zeros((4, 0), np.float32)),
    Case("to rank 0", shuffle(()), (GRID[:1, :1],), np.float32(0)),
    Case("from rank 0", shuffle((1, -1)), (np.float32(7),), np.float32([[7]])),
    Case("rank 0 transposed", shuffle(first=(), second=()), (np.float32(7),), np.float32(7)),
    Case("new shape as input", shuffle((6,)), (GRID, i64(3, 2)), GRID.reshape(3, 2)),
    Case("new shape as int32 with the rest", shuffle(), (GRID, i32(0, -1, 1)), GRID[:, :, None]),
    Case("new shape as input, transposed", shuffle(second=(1, 0)), (GRID, i32(3, 2)), GRID.reshape(3, 2).T),
    Case("new shape of rank 0 as input", shuffle(), (GRID[:1, :1], np.zeros(0, np.int64)), np.float32(0)),
    *(Case(f"{np.dtype(d)}", shuffle((3, 2)), (GRID.astype(d),), GRID.reshape(3, 2).astype(d)) for d in DTYPES),
    Case("all", ISqueezeLayer(), (ONES,), GRID),
    Case("none to go", ISqueezeLayer(), (GRID,), GRID),
    Case("some", ISqueezeLayer(), (ONES, i64(0, -1)), GRID[:, None]),
    Case("listed backwards", ISqueezeLayer(), (ONES, i32(4, 0)), GRID[:, None]),
    Case("empty list", ISqueezeLayer(), (ONES, np.zeros(0, np.int32)), ONES),
    Case("to rank 0", ISqueezeLayer(), (np.bool_([True]), i64(0)), np.bool_(True)),
    Case("beside an empty axis", ISqueezeLayer(), (np.zeros((1, 0), np.float16),), np.zeros(0, np.float16)),
    Case("in front", IUnsqueezeLayer(), (GRID, i64(0)), GRID[None]),
    Case("positions in the output", IUnsqueezeLayer(), (GRID, i32(0, 2, -1)), GRID[None, :, None, :, None]),
    Case("a single position", IUnsqueezeLayer(), (GRID, np.array(1)), GRID[:, None]),
    Case("no position", IUnsqueezeLayer(), (GRID, np.zeros(0, np.int64)), GRID),
    Case("from rank 0", IUnsqueezeLayer(), (np.bool_(True), i64(1, 0)), np.bool_([[True]])),
    Case("in front of an empty axis", IUnsqueezeLayer(), (GRID[:0], i64(0)), np.zeros((1, 0, 3), np.float32)),
    Case("rows", concatenation(0), (GRID, GRID + 6), np.arange(12, dtype=np.float32).reshape(4, 3)),
    Case("columns", concatenation(1), (GRID, GRID[:, :1]), np.float32([[0, 1, 2, 0], [3, 4, 5, 3]])),
    Case("from the end", concatenation(-1), (GRID, GRID[:, :1]), np.float32([[0, 1, 2, 0], [3, 4, 5, 3]])),
    Case("one", concatenation(0), (GRID,), GRID),
    Case("three", concatenation(0), (i64(1), i64(2, 3), i64(4)), i64(1, 2, 3, 4)),
    Case("an empty one", concatenation(0), (GRID[:0], GRID), GRID),
    Case("empty ones", concatenation(1), (GRID[:0], GRID[:0]), np.zeros((0, 6), np.float32)),
    *(
        Case(
            f"{np.dtype(dtype)}",
            concatenation(0),
            (np.array([0], dtype), np.array([1], dtype)),
            np.array([0, 1], dtype),
        )
        for dtype in DTYPES
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_laws(case):
    check_laws(case)


# ---------------------------------------------------------------------------- shuffle


@pytest.mark.parametrize(
    ("dims", "shape", "wanted"),
    [
        ((0, -1), (-1, 3, 4), (-1, 12)),
        ((0, 0, -1), (-1, -1, 4, 5), (-1, -1, 20)),
        ((0, -1), (2, -1), (2, -1)),
        ((-1, 0), (3, -1), (3, -1)),
        ((-1, 4), (-1, 2), (-1, 4)),
        ((-1,), (-1,), (-1,)),
        ((2, 6), (-1, 4), (2, 6)),
        ((2, 3), (-1, -1), (2, 3)),
        ((0, 0), (0, -1), (0, -1)),
    ],
)
def test_reshape_of_unknown_lengths(dims, shape, wanted):
    assert shuffle(dims).infer(f32(*shape)).shape == wanted


def test_transpositions_move_unknown_lengths():
    assert shuffle((0, 0, -1), first=(1, 2, 0), second=(2, 0, 1)).infer(f32(2, -1, 3)).shape == (2, -1, 3)


def test_unknown_new_shape_gives_unknown_lengths():
    assert shuffle().infer(f32(2, 3), index(3)).shape == (-1, -1, -1)


@pytest.mark.parametrize(
    ("dims", "shape"), [((4,), (2, 3)), ((-1, 4), (2, 3)), ((4, 2), (-1, 3)), ((-1, 0), (3,)), ((5,), (0, -1))]
)
def test_reshape_to_another_volume_is_refused(dims, shape):
    layer = shuffle(dims, zero_is_placeholder=False)

    refuses(layer, f32(*shape), match=f"reshape_dims {dims} do not fit a tensor of shape {shape}")


def test_reshape_with_a_copied_length_to_another_volume_is_refused():
    refuses(shuffle((0, 4)), f32(-1, 3), match="reshape_dims (0, 4) do not fit a tensor of shape (-1, 3)")


def test_rest_beside_an_empty_length_is_refused():
    layer = shuffle((0, -1), zero_is_placeholder=False)

    refuses(layer, f32(0, 3), match="reshape_dims (0, -1) do not fit a tensor of shape (0, 3)")


def test_two_rests_are_refused():
    refuses(shuffle((-1, -1)), GRID, match="reshape_dims (-1, -1) have -1 more than once")


def test_length_below_minus_one_is_refused():
    refuses(shuffle((-2, -3)), GRID, match="reshape_dims (-2, -3) have a dim below -1")


def test_copy_of_a_length_that_is_not_there_is_refused():
    refuses(shuffle((2, 3, 0)), GRID, match="reshape_dims (2, 3, 0) copy dim 2 of an input with 2 axes")


@pytest.mark.parametrize("order", [(0,), (0, 0), (1, 2), (0, 1, 2), (-1, 0)])
def test_transposition_that_is_no_permutation_is_refused(order):
    refuses(shuffle(first=order), GRID, match=f"first_transpose is {order}, but must have each of the 2 axes once")


def test_second_transposition_orders_the_new_axes():
    refuses(
        shuffle((6,), second=(1, 0)), GRID, match="second_transpose is (1, 0), but must have each of the 1 axes once"
    )


def test_new_shape_of_unknown_rank_is_refused():
    refuses(shuffle(), GRID, index(-1), match="the new shape int64[-1] has an unknown number of dims")


def test_new_shape_of_floats_is_refused():
    refuses(shuffle(), GRID, f32(2), match="the new shape is 1-D, int32 or int64, not float32[2]")


def test_new_shape_of_nine_axes_is_refused():
    refuses(shuffle(), GRID, index(9), match="the new shape has 9 dims, and may have at most 8")


def test_evaluating_to_another_volume_is_refused():
    with pytest.raises(LayerError, match="do not fit"):
        shuffle().evaluate(GRID, i64(4))


def test_shuffle_leaves_its_input_alone():
    before = GRID.copy()
    shuffle((3, 2), first=(1, 0)).evaluate(GRID)

    np.testing.assert_array_equal(GRID, before)


def test_gradient_of_a_shuffle_is_shuffled_back():
    weights = jnp.arange(6.0)
    found = jax.grad(lambda x: (shuffle((6,), first=(1, 0)).lower(x) * weights).sum())(GRID)

    np.testing.assert_array_equal(found, [[0, 2, 4], [1, 3, 5]])


def test_new_shape_as_an_input_wins_until_reshape_dims_is_set():
    network = INetworkDefinition()
    made = network.add_shuffle(network.add_input("x", DataType.FLOAT, (2, 3)))
    made.set_input(1, network.add_constant((2,), i64(3, 2)).get_output(0))

    assert made.get_output(0).shape == (3, 2)
    made.reshape_dims = (6,)
    assert made.get_output(0).shape == (6,)
    assert made.get_input(1) is None


def test_shuffle_of_a_known_value_is_known():
    network = INetworkDefinition()
    made = network.add_shuffle(network.add_constant((2, 2), i64(1, 2, 3, 4)).get_output(0))
    made.first_transpose = (1, 0)

    assert made.get_output(0).type.ints() == [1, 3, 2, 4]


def test_new_shape_that_a_run_tells_has_a_known_rank():
    network = INetworkDefinition()
    made = network.add_shuffle(network.add_input("x", DataType.FLOAT, (2, 3)))
    made.set_input(1, network.add_input("shape", DataType.INT64, (3,)))

    assert made.get_output(0).shape == (-1, -1, -1)


# ---------------------------------------------------------------------------- squeeze, unsqueeze


def test_squeeze_of_an_unknown_length_takes_it_for_one():
    assert ISqueezeLayer().infer(f32(-1, 3), TensorType.of(i64(0))).shape == (3,)


def test_squeeze_of_unknown_axes_has_a_known_rank():
    assert ISqueezeLayer().infer(f32(1, 3, 1), index(2)).shape == (-1,)


def test_squeeze_of_all_axes_of_an_unknown_length_is_refused():
    refuses(ISqueezeLayer(), f32(-1, 3), match="the input float32[-1,3] has axes of unknown length")


def test_squeeze_of_two_elements_is_refused():
    refuses(ISqueezeLayer(), GRID, i64(0), match="axis 0 has 2 elements, and only axes of length 1 can be removed")


def test_squeeze_of_an_empty_axis_is_refused():
    refuses(ISqueezeLayer(), f32(0), i64(0), match="axis 0 has 0 elements, and only axes of length 1 can be removed")


def test_squeeze_of_an_axis_that_is_not_there_is_refused():
    refuses(ISqueezeLayer(), GRID, i64(2), match="axis 2 is not one of the 2 axes")


def test_squeeze_of_an_axis_named_twice_is_refused():
    refuses(ISqueezeLayer(), f32(1, 1), i64(0, -2), match="the axes [0, -2] list an axis twice")


def test_squeeze_of_more_axes_than_there_are_is_refused():
    refuses(ISqueezeLayer(), f32(1), index(2), match="2 axes are to be removed, and the input float32[1] has 1")


@pytest.mark.parametrize("axes", [index(), np.array(0)])
def test_squeeze_takes_a_list_of_axes(axes):
    refuses(ISqueezeLayer(), f32(1), axes, match="the axes are 1-D, not int64[]")


@pytest.mark.parametrize("layer", [ISqueezeLayer(), IUnsqueezeLayer()])
def test_axes_of_floats_are_refused(layer):
    refuses(layer, f32(1), f32(1), match="the axes are int32 or int64, and 1-D, not float32[1]")


@pytest.mark.parametrize("layer", [ISqueezeLayer(), IUnsqueezeLayer()])
def test_unknown_number_of_axes_is_refused(layer):
    refuses(layer, f32(1), index(-1), match="the number of axes in int64[-1] is unknown")


def test_unsqueeze_keeps_unknown_lengths():
    assert IUnsqueezeLayer().infer(f32(-1, 3), TensorType.of(i64(1))).shape == (-1, 1, 3)


def test_unsqueeze_of_unknown_axes_has_a_known_rank():
    assert IUnsqueezeLayer().infer(f32(3), index(2)).shape == (-1, -1, -1)


def test_unsqueeze_past_the_output_is_refused():
    refuses(IUnsqueezeLayer(), GRID, i64(3), match="axis 3 is not one of the 3 axes")


def test_unsqueeze_of_an_axis_named_twice_is_refused():
    refuses(IUnsqueezeLayer(), GRID, i64(0, -4), match="the axes [0, -4] list an axis twice")


def test_unsqueeze_to_nine_axes_is_refused():
    refuses(IUnsqueezeLayer(), f32(*(1,) * 8), i64(0), match="the output has 9 axes, and may have at most 8")


def test_gradients_pass_through_squeeze_unchanged():
    found = jax.grad(lambda x: (ISqueezeLayer().lower(x) * GRID).sum())(jnp.asarray(ONES))

    np.testing.assert_array_equal(found, ONES)


def test_gradients_pass_through_unsqueeze_unchanged():
    found = jax.grad(lambda x: (IUnsqueezeLayer().lower(x, i64(0)) * GRID).sum())(jnp.asarray(GRID))

    np.testing.assert_array_equal(found, GRID)


def test_network_squeezes_the_axes_of_its_input():
    network = INetworkDefinition()
    x = network.add_input("x", DataType.FLOAT, (-1, 1, 1))
    made = network.add_squeeze(x, network.add_constant((1,), i64(1)).get_output(0))

    assert made.get_output(0).shape == (-1, 1)


def test_axes_set_later_mend_a_squeeze():
    network = INetworkDefinition()
    made = network.add_squeeze(network.add_input("x", DataType.FLOAT, (-1, 1)))

    with pytest.raises(NetworkError, match=r"fix: list the axes: set_input\(1, axes\)"):
        _ = made.get_output(0).shape
    made.set_input(1, network.add_constant((1,), i64(1)).get_output(0))
    assert made.get_output(0).shape == (-1,)


def test_network_unsqueezes():
    network = INetworkDefinition()
    x = network.add_input("x", DataType.FLOAT, (2, 3))
    made = network.add_unsqueeze(x, network.add_constant((2,), i64(0, -1)).get_output(0))

    assert made.get_output(0).shape == (1, 2, 3, 1)


# ---------------------------------------------------------------------------- concatenation


@pytest.mark.parametrize(
    ("other", "fix"), [(f32(1, 2, 5), "set axis to 2, the only one that differs"), (f32(1, 3, 5), "")]
)
def test_concatenation_along_another_axis_names_the_one_that_differs(other, fix):
    with pytest.raises(LayerError) as caught:
        concatenation(0).infer(f32(1, 2, 4), other)

    assert caught.value.fix == fix


def test_joined_unknown_length_is_unknown():
    assert concatenation(0).infer(f32(2, 3), f32(-1, 3), f32(1, 3)).shape == (-1, 3)


def test_unknown_length_across_the_join_is_that_of_another_input():
    assert concatenation(0).infer(f32(2, -1), f32(2, 3), f32(2, -1)).shape == (6, 3)


def test_lengths_that_differ_across_the_join_are_refused():
    refuses(
        concatenation(0),
        f32(2, 3),
        f32(2, -1),
        f32(2, 4),
        match="input 2 has the shape (2, 4), and the inputs before it",
    )


def test_join_of_two_types_is_refused():
    refuses(concatenation(0), f32(2), index(2), match="input 1 is int64[2], and input 0 is float32[2]")


def test_join_of_two_ranks_is_refused():
    refuses(concatenation(0), f32(2), f32(2, 1), match="input 1 has 2 axes, and input 0 has 1")


def test_join_of_numbers_without_axes_is_refused():
    refuses(concatenation(0), f32(), f32(), match="input 0 is float32[], and has no axis to join along")


def test_join_along_an_axis_that_is_not_there_is_refused():
    refuses(concatenation(2), GRID, GRID, match="axis 2 is not one of the 2 axes")


def test_join_of_nothing_is_refused():
    refuses(concatenation(0), match="the list of inputs is empty")


def test_evaluating_a_join_of_lengths_that_differ_is_refused():
    with pytest.raises(LayerError, match="input 1 has the shape"):
        concatenation(0).evaluate(GRID, GRID[:, :1])


def test_gradient_of_a_join_is_split():
    weights = jnp.arange(3.0)
    found = jax.grad(lambda a, b: (concatenation(0).lower(a, b) * weights).sum(), (0, 1))(jnp.ones(1), jnp.ones(2))

    np.testing.assert_array_equal(found[0], [0])
    np.testing.assert_array_equal(found[1], [1, 2])


def test_network_joins_along_the_third_axis_from_the_end_until_axis_is_set():
    network = INetworkDefinition()
    x = network.add_input("x", DataType.FLOAT, (2, 3, 4, 5))
    made = network.add_concatenation([x, x])

    assert made.get_output(0).shape == (2, 6, 4, 5)
    made.axis = 0
    assert made.get_output(0).shape == (4, 3, 4, 5)


def test_joined_shapes_are_known():
    network = INetworkDefinition()
    x = network.add_input("x", DataType.FLOAT, (2, 3))
    shape = network.add_shape(x).get_output(0)
    made = network.add_concatenation([shape, network.add_constant((1,), i64(7)).get_output(0)])

    assert made.get_output(0).type.ints() == [2, 3, 7]
