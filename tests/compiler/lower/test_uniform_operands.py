"""Products by operands that are one number: right in engines, and in functions that users compile by themselves."""

import jax
import numpy as np
import pytest

import netloop as trt
import netloop.stablehlo
from netloop.compiler import xla_compilation
from netloop.compiler.lower.uniform_operands import may_be_uniform, varied
from tests.support import networks, uniform_products
from tests.support.devices import assert_allclose
from tests.support.examples import mostly_slow
from tests.support.uniform_products import MAKERS

TRANSPOSE = trt.MatrixOperation.TRANSPOSE
NETWORKS = {
    **{
        f"{name}, {rows} rows": (lambda maker=maker, rows=rows: uniform_products.matrix_network(maker, rows))
        for name, maker in MAKERS.items()
        for rows in (63, 64, 256)
    },
    "narrow": lambda: uniform_products.matrix_network(uniform_products.of_constant, 4096, 2, 3),
    "one column": lambda: uniform_products.matrix_network(uniform_products.of_constant, 8192, 64, 1),
    "second operand transposed": lambda: uniform_products.matrix_network(uniform_products.of_constant, op=TRANSPOSE),
    "convolution": lambda: uniform_products.convolution_network(uniform_products.of_constant),
    "convolution by an input": lambda: uniform_products.convolution_network(uniform_products.of_input, 1),
    "one number in each batch": uniform_products.batch_network,
    "einsum": lambda: uniform_products.einsum_network(uniform_products.of_constant),
    "loop": lambda: uniform_products.loop_network(uniform_products.of_constant),
    "loop by an input": lambda: uniform_products.loop_network(uniform_products.of_input),
    "ONNX": uniform_products.onnx_network,
    "JAX": uniform_products.jax_network,
}
FAST = [name for name in NETWORKS if " rows" not in name or name.endswith(" 64 rows")]
COMPILATIONS = 5  # the wrong numbers of one compilation may be small


@pytest.fixture(autouse=True)
def without_detection(monkeypatch: pytest.MonkeyPatch):
    """These forms have to hold without it, as nobody reads the programs that users compile."""
    monkeypatch.setattr(xla_compilation, "options_without_faults", lambda text: {})


def engine(network, feeds):
    return trt.compile(network)(feeds)


def engine_without_passes(network, feeds):
    return trt.compile(network, passes=())(feeds)


def function_of_weights(network, feeds):
    function, weights = trt.to_jax(network)
    return jax.jit(function).lower(weights, feeds).compile()(weights, feeds)


def function_with_weights_inside(network, feeds):
    function, weights = trt.to_jax(network)
    return jax.jit(lambda feeds: function(weights, feeds)).lower(feeds).compile()(feeds)


def exported(network, feeds):
    return netloop.stablehlo.exported(network).call(feeds)


WAYS = [engine, engine_without_passes, function_of_weights, function_with_weights_inside, exported]


def check(name, way, compilations):
    network = NETWORKS[name]()
    feeds = uniform_products.feeds_of(network)
    wanted = trt.evaluate(network, feeds)
    for _ in range(compilations):
        made = way(network, feeds)
        for key, value in wanted.items():
            assert_allclose(made[key], value, rtol=1e-3, atol=1e-3, err_msg=f"{key} of {name}")


@pytest.mark.parametrize("way", mostly_slow(1, [engine, function_with_weights_inside]), ids=lambda way: way.__name__)
@pytest.mark.parametrize("name", FAST)
def test_products_by_one_number_are_right(name: str, way):
    check(name, way, 1)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("name", NETWORKS)
def test_products_by_one_number_are_right_in_every_compilation(name: str, way):
    check(name, way, COMPILATIONS)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, jax.numpy.bfloat16])
@pytest.mark.parametrize("number", [0.0, -0.0, 1.5, np.inf, -np.inf, np.nan])
def test_the_form_changes_no_number(number: float, dtype: type):
    with jax.enable_x64(True):
        for shape in ((), (5,), (3, 1), (1, 3), (0, 2)):
            x = np.full(shape, number, dtype)
            made = np.asarray(jax.jit(varied)(x))
            assert made.dtype == x.dtype
            np.testing.assert_array_equal(made.astype(np.float64), x.astype(np.float64))
            np.testing.assert_array_equal(np.signbit(made), np.signbit(x))


def test_the_form_of_many_half_types_changes_no_number():
    """Places beyond 65,504 are infinite in float16."""
    x = np.full((300, 300), 1.5, np.float16)
    np.testing.assert_array_equal(jax.jit(varied)(x), x)


def test_integers_are_left_as_they_are():
    x = np.arange(6).reshape(2, 3)
    assert varied(x).dtype == jax.numpy.asarray(x).dtype
    np.testing.assert_array_equal(varied(x), x)


def may_be(network, tensor):
    return may_be_uniform(tensor, network.types)


def test_tensors_of_numbers_only_may_be_uniform():
    for maker in MAKERS.values():
        network = trt.INetworkDefinition()
        assert may_be(network, maker(network, (64, 64)))


def test_inputs_weights_and_random_numbers_vary():
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (64, 64))
    rows = networks.constant(network, np.eye(64, dtype=np.float32))
    draws = network.add_fill((64, 64), trt.FillOperation.RANDOM_UNIFORM).get_output(0)
    for tensor in x, rows, draws, networks.combine(network, x, 2.0):
        assert not may_be(network, tensor)


def test_kernels_of_one_pixel_vary_once_they_are_matrices():
    network = trt.INetworkDefinition()
    kernels = np.arange(12, dtype=np.float32).reshape(4, 3, 1, 1)
    for operand in (networks.constant(network, kernels), network.add_input("kernels", trt.float32, (4, 3, 1, 1))):
        moved = network.add_shuffle(operand)
        moved.first_transpose = 2, 3, 1, 0
        matrix = network.add_shuffle(moved.get_output(0))
        matrix.reshape_dims = 3, 4

        assert not may_be(network, moved.get_output(0))
        assert not may_be(network, matrix.get_output(0))


def test_kernels_of_one_pixel_that_have_one_number_may_be_uniform():
    network = trt.INetworkDefinition()
    ones = uniform_products.of_constant(network, (64, 64, 1, 1))
    for operand in (ones, networks.constant(network, np.ones((64, 64, 1, 1), np.float32))):
        matrix = network.add_shuffle(operand)
        matrix.reshape_dims = 64, 64

        assert may_be(network, matrix.get_output(0))


def test_sums_of_batches_of_one_number_may_be_uniform():
    """XLA sums the numbers, and repeats the sum."""
    network = trt.INetworkDefinition()
    numbers = network.add_input("numbers", trt.float32, (5, 1, 1))
    batches = networks.combine(network, numbers, uniform_products.of_constant(network, (5, 64, 64)))
    assert may_be(network, batches)
    assert may_be(network, uniform_products.reduce(network, batches, trt.ReduceOperation.SUM, 0))


def test_a_state_that_begins_with_zeros_varies_unless_it_stays():
    """Else each step of a recurrent network would pay for the form."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (8, 64, 64))
    loop = networks.counted(network, 8)
    rows = loop.add_iterator(x).get_output(0)
    zeros = uniform_products.of_constant(network, (64, 64))
    changing, staying = loop.add_recurrence(zeros), loop.add_recurrence(zeros)
    changing.set_input(1, networks.combine(network, changing.get_output(0), rows))
    staying.set_input(1, staying.get_output(0))
    networks.mark(network, a=networks.last(loop, changing.get_output(0)), b=networks.last(loop, staying.get_output(0)))
    assert not may_be(network, changing.get_output(0))
    assert may_be(network, staying.get_output(0))
