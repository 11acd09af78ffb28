import jax
import jax.numpy as jnp
import numpy as np
import pytest

import netloop as trt
from netloop.model.layers.sources import IConstantLayer, IFillLayer, IShapeLayer
from netloop.model.network import INetworkDefinition
from netloop.values.enums import DataType, FillOperation
from netloop.values.types import TensorType
from tests.support.devices import assert_allclose
from tests.support.examples import mostly_slow
from tests.support.laws import Case, check_laws, refuses
from tests.support.log import Log
from tests.support.networks import mark

LINSPACE, UNIFORM, NORMAL = FillOperation.LINSPACE, FillOperation.RANDOM_UNIFORM, FillOperation.RANDOM_NORMAL
SIX = np.arange(6, dtype=np.float32)
DTYPES = [np.float32, np.float16, jnp.bfloat16, np.float64, np.int8, np.uint8, np.int32, np.int64, np.bool_]


def constant(shape, weights):
    return IConstantLayer(shape=shape, weights=weights)


def fill(shape=(), operation=LINSPACE, to_type=DataType.FLOAT, **named):
    layer = IFillLayer(shape=shape, operation=operation, to_type=to_type, **named)
    vars(layer)["index"] = 0
    return layer


def scalar(value, dtype=np.float32):
    return np.array(value, dtype)


def index(*shape):
    return TensorType(np.dtype(np.int64), shape)


def f32(*shape):
    return TensorType(np.dtype(np.float32), shape)


CASES = [
    *(
        Case(f"of {np.dtype(dtype)}", constant((2, 1), np.array([0, 1], dtype)), (), np.array([[0], [1]], dtype))
        for dtype in DTYPES
    ),
    Case("of rank 0 from one element", constant((), np.int32([5])), (), np.int32(5)),
    Case("of a length left open", constant((2, -1), SIX), (), SIX.reshape(2, 3)),
    Case("without elements", constant((0, 3), SIX[:0]), (), np.zeros((0, 3), np.float32)),
    Case("without elements, a length left open", constant((3, -1), SIX[:0]), (), np.zeros((3, 0), np.float32)),
    Case("too large to be known while building", constant((300,), np.ones(300, np.float32)), (), np.ones(300)),
    Case("linear by default", fill((4,)), (), np.float32([0, 1, 2, 3])),
    Case("linear", fill((4,), alpha=0.5, beta=-0.25), (), np.float32([0.5, 0.25, 0, -0.25])),
    Case("linear of rank 0", fill((), alpha=7.5), (), np.float32(7.5)),
    Case("linear without elements", fill((0,)), (), np.float32([])),
    Case("linear int32", fill((3,), to_type=DataType.INT32, alpha=5, beta=-2), (), np.int32([5, 3, 1])),
    Case("linear int64", fill((3,), to_type=DataType.INT64, alpha=2**40, beta=2), (), 2**40 + np.int64([0, 2, 4])),
    Case("linear half", fill((3,), to_type=DataType.HALF, beta=0.5), (), np.float16([0, 0.5, 1])),
    Case("linear bfloat16", fill((3,), to_type=DataType.BF16, beta=0.5), (), np.array([0, 0.5, 1], jnp.bfloat16)),
    Case("linear double", fill((3,), to_type=DataType.DOUBLE, beta=0.1), (), np.float64([0, 0.1, 0.2]), 1e-15),
    Case("shape as input", fill((9, 9)), (np.int32([3]),), np.float32([0, 1, 2])),
    Case("shape of rank 0 as input", fill((9,), alpha=2), (np.zeros(0, np.int64),), np.float32(2)),
    Case(
        "linear in two directions",
        fill((2, 3)),
        (None, scalar(1), np.float32([10, 0.5])),
        np.float32([[1, 1.5, 2], [11, 11.5, 12]]),
    ),
    Case(
        "linear int64 beyond what a double holds",
        fill((2,), to_type=DataType.INT64),
        (None, scalar(2**62 + 1, np.int64), np.int64([2])),
        np.int64([2**62 + 1, 2**62 + 3]),
    ),
    Case("all inputs", fill(), (np.int64([2]), scalar(1), np.float32([4])), np.float32([1, 5])),
    Case("linear of rank 0 from inputs", fill(()), (None, scalar(3), np.zeros(0, np.float32)), np.float32(3)),
    *(
        Case(f"{op.name} {to_type.name}", fill((3, 2), op, to_type, alpha=1, beta=3), (), named={"trips": (3, 4)})
        for op in (UNIFORM, NORMAL)
        for to_type in (DataType.FLOAT, DataType.HALF, DataType.BF16, DataType.DOUBLE)
    ),
    Case("uniform between inputs", fill((9,), UNIFORM), (None, scalar(5), scalar(6)), named={"trips": (1,)}),
    Case("uniform of one number", fill((2,), UNIFORM, alpha=3, beta=3), (), np.float32([3, 3])),
    Case("normal without deviation", fill((2,), NORMAL, alpha=3, beta=0), (), np.float32([3, 3])),
    Case("normal of a shape as input", fill((), NORMAL), (np.int64([2, 2]),), named={"trips": (0,)}),
    Case("uniform without elements", fill((0, 2), UNIFORM), (), np.zeros((0, 2), np.float32)),
    Case("of a matrix", IShapeLayer(), (SIX.reshape(2, 3),), np.int64([2, 3])),
    Case("of rank 0", IShapeLayer(), (scalar(1, np.bool_),), np.int64([])),
    Case("of nothing", IShapeLayer(), (SIX[:0],), np.int64([0])),
]


@pytest.mark.parametrize("case", mostly_slow(30, CASES), ids=str)
def test_laws(case):
    check_laws(case)


# ---------------------------------------------------------------------------- constant


def test_constant_is_known_while_building():
    assert constant((2,), np.int64([3, 4])).infer().ints() == [3, 4]


def test_large_constant_is_not_kept_as_a_known_value():
    assert constant((1000,), np.ones(1000)).infer().value is None


@pytest.mark.parametrize(("shape", "elements"), [((2, 2), 6), ((), 6), ((4, -1), 6), ((0, -1), 0), ((7,), 6)])
def test_shape_that_does_not_hold_the_weights_is_refused(shape, elements):
    refuses(constant(shape, SIX[:elements]), match=f"weights have {elements} elements, which shape {shape}")


def test_two_open_lengths_are_refused():
    refuses(constant((-1, -1), SIX), match="shape (-1, -1) has -1 more than once")


def test_length_below_minus_one_is_refused():
    refuses(constant((-2, -3), SIX), match="shape (-2, -3) has a dim below -1")


def test_constant_of_a_network_follows_its_weights():
    network = INetworkDefinition()
    made = network.add_constant((2,), np.int32([1, 2]))

    assert made.get_output(0).type.ints() == [1, 2]
    made.shape, made.weights = (3, 1), np.float64([1, 2, 3])
    assert made.get_output(0).shape == (3, 1)
    assert made.get_output(0).dtype is DataType.DOUBLE


# ---------------------------------------------------------------------------- fill


def test_unknown_shape_gives_unknown_lengths():
    assert fill(operation=UNIFORM).infer(index(3)).shape == (-1, -1, -1)


def test_linear_steps_of_unknown_number_are_no_error():
    assert fill((2, 3)).infer(None, f32(), f32(-1)).shape == (2, 3)


@pytest.mark.parametrize("operation", [UNIFORM, NORMAL])
def test_other_iterations_draw_different_numbers(operation):
    layer = fill((100,), operation)

    assert not np.any(layer.evaluate(trips=(1, 2)) == layer.evaluate(trips=(2, 1)))


@pytest.mark.parametrize("to_type", [DataType.FLOAT, DataType.HALF, DataType.BF16])
def test_uniform_numbers_stay_below_beta(to_type):
    drawn = fill((20000,), UNIFORM, to_type, alpha=256, beta=257).evaluate(trips=(5,)).astype(np.float64)

    assert drawn.min() >= 256
    assert drawn.max() < 257


def test_uniform_numbers_fill_their_range():
    drawn = fill((20000,), UNIFORM, alpha=-1, beta=3).evaluate(trips=(5,))

    assert_allclose([drawn.min(), drawn.mean(), drawn.max()], [-1, 1, 3], atol=0.05)


def test_normal_numbers_have_their_mean_and_deviation():
    drawn = fill((20000,), NORMAL, alpha=-1, beta=3).evaluate(trips=(5,))

    assert_allclose([drawn.mean(), drawn.std()], [-1, 3], atol=0.1)


def test_trips_may_be_traced():
    layer = fill((4,), NORMAL)

    assert_allclose(jax.jit(lambda trip: layer.lower(trips=(1, trip)))(7), layer.evaluate(trips=(1, 7)), 1e-6)


@pytest.mark.parametrize("operation", [UNIFORM, NORMAL])
def test_pure_function_draws_all_bits_of_float64_without_the_x64_setting(operation):
    network = INetworkDefinition()
    drawn = network.add_fill((2, 3), operation, DataType.DOUBLE)
    drawn.alpha, drawn.beta = 0, 1
    mark(network, y=drawn.get_output(0))
    function, weights = trt.to_jax(network)

    y = jax.jit(function)(weights, {})["y"]

    with jax.enable_x64(True):
        key = jax.random.fold_in(jax.random.key(np.uint32(0), impl="threefry2x32"), drawn.index)
        wanted = {UNIFORM: jax.random.uniform, NORMAL: jax.random.normal}[operation](key, (2, 3), np.float64)
        assert_allclose(np.asarray(y), np.asarray(wanted), 1e-15)


def test_only_random_kinds_draw():
    assert [fill((1,), operation).draws for operation in (LINSPACE, UNIFORM, NORMAL)] == [False, True, True]


def test_gradient_of_linear_numbers_by_the_steps_sums_the_indices():
    layer = fill((2, 3))

    found = jax.grad(lambda alpha, beta: layer.lower(None, alpha, beta).sum(), (0, 1))(0.0, jnp.zeros(2))

    assert found[0] == 6
    np.testing.assert_array_equal(found[1], [3, 6])


def test_gradient_of_random_numbers_by_mean_is_one_each():
    layer = fill((4,), NORMAL)

    assert jax.grad(lambda alpha: layer.lower(None, alpha, 1.0, trips=(1,)).sum())(0.0) == 4


def test_alpha_and_beta_are_int64_with_int64_elements():
    assert fill((1,), to_type=DataType.INT64).is_alpha_beta_int64()
    assert not fill((1,)).is_alpha_beta_int64()


@pytest.mark.parametrize("value", [[1000], "1", None, trt.float32])
def test_parameter_that_is_no_number_is_ignored_with_a_line_in_the_log(value):
    """As in the log of a run on a GPU: after ``alpha = [1000]`` a fill counts 0, 1, 2, 3."""
    log = Log()
    network = trt.Builder(log).create_network()
    layer = network.add_fill((4,), trt.FillOperation.LINSPACE)
    layer.alpha = layer.beta = value

    assert layer.evaluate().tolist() == [0, 1, 2, 3]
    assert [severity.name for severity, _ in log.lines] == ["WARNING"] * 2
    assert "alpha of a fill stays 0.0, because" in log.lines[0][1]


def test_alpha_that_is_no_number_is_refused():
    layer = IFillLayer(shape=(1,), operation=LINSPACE)

    with pytest.raises(TypeError, match=r"IFillLayer\.alpha must be a number, not \[1\]"):
        layer.alpha = [1]


def test_linear_bools_are_refused():
    refuses(fill((1,), to_type=DataType.BOOL), match="LINSPACE makes integers or floating-point numbers, not bool")


@pytest.mark.parametrize("operation", [UNIFORM, NORMAL])
def test_random_integers_are_refused(operation):
    refuses(fill((1,), operation, DataType.INT32), match="makes floating-point numbers, not int32")


def test_negative_length_is_refused():
    refuses(fill((2, -1), UNIFORM), match="the shape (2, -1) has a negative dim")


def test_negative_length_as_input_is_refused():
    refuses(fill(), np.int64([-3]), match="the shape (-3,) has a negative dim")


def test_shape_of_floats_is_refused():
    refuses(fill(), f32(1), match="the shape is 1-D, int32 or int64, not float32[1]")


def test_shape_of_unknown_rank_is_refused():
    refuses(fill(), index(-1), match="the shape int64[-1] has an unknown number of dims")


def test_alpha_without_beta_is_refused():
    refuses(fill((1,)), None, f32(), match="alpha is an input, and beta is not")


def test_beta_without_alpha_is_refused():
    refuses(fill((1,)), None, None, f32(1), match="beta is an input, and alpha is not")


def test_alpha_of_another_type_is_refused():
    refuses(fill((1,)), None, index(), f32(1), match="alpha is int64[], but must be float32[]")


def test_alpha_with_axes_is_refused():
    refuses(fill((1,)), None, f32(1), f32(1), match="alpha is float32[1], but must be float32[]")


def test_steps_of_another_number_than_the_axes_are_refused():
    refuses(fill((1, 2)), None, f32(), f32(3), match="beta is float32[3], but must be float32[2]")


def test_deviation_with_axes_is_refused():
    refuses(fill((1,), NORMAL), None, f32(), f32(1), match="beta is float32[1], but must be float32[]")


def test_linear_of_two_axes_with_one_step_is_refused():
    refuses(fill((2, 2)), match="the shape has 2 axes, and beta is one number")


def test_broken_alpha_of_integers_is_refused():
    refuses(fill((2,), to_type=DataType.INT32, alpha=0.5), match="alpha is 0.5, and int32 has only whole numbers")


def test_uniform_range_upside_down_is_refused():
    refuses(fill((2,), UNIFORM, alpha=2), match="alpha is 2.0 and beta 1.0")


def test_uniform_range_upside_down_as_inputs_is_refused():
    refuses(fill((2,), UNIFORM), None, scalar(2), scalar(1), match="alpha is 2.0 and beta 1.0")


def test_linear_fill_of_a_network_is_known():
    network = INetworkDefinition()
    made = network.add_fill((3,), LINSPACE, DataType.INT32)

    assert made.get_output(0).type.ints() == [0, 1, 2]


def test_random_fill_of_a_network_is_not_known():
    made = INetworkDefinition().add_fill((3,), UNIFORM)

    assert made.get_output(0).type.value is None


def test_shape_as_an_input_wins_until_the_attribute_is_set():
    network = INetworkDefinition()
    made = network.add_fill((3,), LINSPACE)
    made.set_input(0, network.add_constant((1,), np.int64([5])).get_output(0))

    assert made.get_output(0).shape == (5,)
    made.shape = (4,)
    assert made.get_output(0).shape == (4,)
    assert made.get_input(0) is None


def test_steps_as_inputs_allow_many_axes():
    network = INetworkDefinition()
    made = network.add_fill((2, 2), LINSPACE, DataType.INT64)
    made.set_input(1, network.add_constant((), np.int64([1])).get_output(0))
    made.set_input(2, network.add_constant((2,), np.int64([10, 1])).get_output(0))

    assert made.get_output(0).type.ints() == [1, 2, 11, 12]


# ---------------------------------------------------------------------------- shape


def test_shape_with_an_unknown_length_is_not_known():
    found = IShapeLayer().infer(f32(2, -1))

    assert found.shape == (2,)
    assert found.value is None


def test_shape_of_a_network_is_known():
    network = INetworkDefinition()
    x = network.add_input("x", DataType.HALF, (3, 0, 2))
    made = network.add_shape(x).get_output(0)

    assert made.type.ints() == [3, 0, 2]
    assert made.dtype is DataType.INT64


def test_weights_of_a_constant_are_flat_and_not_copied():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    layer = INetworkDefinition().add_constant((2, 3), array)

    assert layer.weights.shape == (6,)
    assert np.shares_memory(layer.weights, array)
    assert layer.get_output(0).shape == (2, 3)
