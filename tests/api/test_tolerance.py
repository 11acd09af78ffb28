"""The usual tolerances of a comparison follow the size of the numbers."""

import ml_dtypes
import numpy as np
import pytest

import netloop as trt
from netloop.api.compare import Comparison
from netloop.api.tolerance import Tolerance, Tolerances, follow_from_products
from netloop.compiler.execution.weight_loading import DeviceWeights
from netloop.compiler.product_precision import BFLOAT16, FLOAT32, TENSORFLOAT32
from netloop.peers import agreements
from tests.support.networks import F, combine, constant, counted, last, mark
from tests.support.rounding_devices import BITS, pretend, rounded

pytestmark = pytest.mark.usefixtures("default_precision")

USUAL = Tolerance(None, None)
FLOATS = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz,
          ml_dtypes.float8_e5m2, ml_dtypes.float8_e5m2fnuz, ml_dtypes.float4_e2m1fn]  # fmt: skip
ODD = np.array([1.0, -1.0, 2.0, -2.0, 1.5])


def one(got, expected, **tolerances):
    (found,) = agreements({"y": np.asarray(got)}, {"y": np.asarray(expected)}, **tolerances)
    return found


def worst(got, expected, tolerance=USUAL):
    expected = np.asarray(expected)
    return tolerance.limits(expected).worst(expected, np.asarray(got))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("wrong", [0 * ODD, -ODD, ODD[::-1], 2 * ODD])
def test_zeros_negated_and_permuted_numbers_differ_in_every_type(dtype, wrong):
    assert worst(ODD.astype(dtype), ODD.astype(dtype)) is None
    assert worst(wrong.astype(dtype), ODD.astype(dtype)) is not None


@pytest.mark.parametrize("dtype", FLOATS)
def test_numbers_that_are_all_equal_differ_from_zeros(dtype):
    assert worst(np.zeros(4, dtype), np.ones(4, dtype)) is not None


def test_powers_of_two_differ_from_the_least_one():
    ones = np.ones(4, ml_dtypes.float8_e8m0fnu)

    assert worst(np.full(4, 2.0**-127, ones.dtype), ones) is not None


@pytest.mark.parametrize("scale", [1e-30, 1e-9, 1e-4, 1.0, 1e6, 1e30])
def test_rounding_agrees_and_errors_differ_at_every_scale(scale):
    right = F(scale) * np.random.default_rng(0).normal(size=1000).astype(F)

    assert worst(right * F(1 + 1e-6), right) is None
    assert worst(right * F(1.01), right) is not None
    for wrong in (right * 0, -right, right[::-1]):
        assert worst(wrong, right) is not None


def test_noise_of_a_sum_agrees_where_it_nearly_cancels():
    assert worst(F([1e-13, 1e-9, -1e-9]), F([1e-15, 1e-9, -1e-9])) is None


def test_large_numbers_do_not_raise_the_absolute_tolerance():
    assert USUAL.limits(F([1e9, -3e38, 1])).atol == pytest.approx(2**-11.5)
    assert worst(F([1e9, 5, 7]), F([1e9, 1, 2])) is not None


def test_absolute_tolerance_is_the_root_of_epsilon_times_the_root_mean_square():
    # the root mean square of 3e-6 and 4e-6 is 5e-6 / sqrt(2), and epsilon is 2 ** -23
    assert USUAL.limits(F([3e-6, 4e-6])).atol == pytest.approx(2**-11.5 * 5e-6 / 2**0.5)
    assert USUAL.limits(F([3e-6]), F([4e-6])).atol == USUAL.limits(F([3e-6, 4e-6])).atol


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_squares_of_extreme_numbers_do_not_matter(scale):
    assert USUAL.limits(np.float64([scale, scale])).atol == pytest.approx(2.0**-26 * min(1, scale))


def test_infinities_and_nan_are_no_measure():
    assert USUAL.limits(F([np.inf, np.nan, 1e-6])).atol == USUAL.limits(F([1e-6])).atol
    assert worst(F([np.inf, 0]), F([np.inf, 1e-9])) is not None


@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16])
def test_numbers_that_a_device_rounds_to_zero_agree_with_zero(dtype):
    below = np.asarray([ml_dtypes.finfo(dtype).smallest_normal / 2], dtype)

    assert worst(np.zeros(1, dtype), below) is None
    assert worst(below, np.zeros(1, dtype)) is None


def test_zeros_agree_with_zeros_only():
    assert one(np.zeros(3, F), np.zeros(3, F)).agrees
    assert not one(np.full(3, 1e-9, F), np.zeros(3, F)).agrees


@pytest.mark.parametrize("atol", [None, 1.0, 100.0])
def test_integers_and_bools_are_compared_exactly(atol):
    assert not one([1, 3], [1, 2], rtol=1.0, atol=atol).agrees
    assert not one([True, False], [True, True], rtol=1.0, atol=atol).agrees
    assert not one(np.int64([2**62 + 1]), np.int64([2**62]), atol=atol).agrees


@pytest.mark.parametrize(
    ("got", "expected", "atol", "caution"),
    [
        (F([0, 0]), F([1e-9, 2e-9]), 1e-3,
         "but the absolute tolerance 0.001 is larger than every number, so zeros would agree too"),
        (F([1e-9]), F([1e-9]), None, ""),
        (F([0, 5]), F([0, 5]), 1e-3, ""),
        (F([0, 0]), F([0, 0]), None, "all numbers are 0"),
        (np.int64([0, 0]), np.int64([0, 0]), None, "all numbers are 0"),
        (F([np.nan, np.inf]), F([np.nan, np.inf]), None, "none of the numbers is finite"),
        (np.zeros((0, 3), F), np.zeros((0, 3), F), None, "it has no elements"),
        (np.array([False]), np.array([False]), None, ""),
    ],
)  # fmt: skip
def test_agreement_that_says_little_says_so(got, expected, atol, caution):
    found = one(got, expected, atol=atol)

    assert found.agrees
    assert found.caution == caution
    assert str(found).endswith(f"; {caution}" if caution else "relative 0")


# ---------------------------------------------------------------------------- comparisons with the reference


def small(network):
    x = network.add_input("x", trt.float32, (3,))
    return mark(network, y=combine(network, x, constant(network, F([1e-9])), trt.ElementWiseOperation.PROD))


def test_engine_that_computes_zeros_for_small_numbers_differs_from_the_reference(network):
    engine, inputs = trt.compile(small(network)), {"x": F([1, 2, 3])}
    engine.executable.weights = DeviceWeights(0 * weight for weight in engine.executable.weights)

    assert not trt.compare(network, inputs, engine).agrees
    assert trt.compare(network, inputs).agrees


def test_comparison_names_the_tensors_that_a_tolerance_hides(network):
    inputs = {"x": F([1, 2, 3])}

    assert trt.compare(small(network), inputs).hidden == ()
    found = trt.compare(network, inputs, atol=1e-3)
    assert (found.agrees, found.hidden) == (True, ("y",))
    assert str(found) == (
        "1 elements agree\nthe absolute tolerance is larger than every number of 'y', so zeros would agree too"
    )


def test_comparison_without_elements_says_so():
    assert one(np.zeros(0, F), np.zeros(0, F)).elements == 0
    assert str(Comparison(None, 0)) == "there were no elements to compare"


def test_tolerance_of_a_state_is_of_all_its_iterations(network):
    """A state that converges to 0 ends as noise, which is no difference."""
    loop = counted(network, 2)
    state = loop.add_recurrence(network.add_input("x", trt.float32, (1,)))
    state.set_input(1, combine(network, state.get_output(0), constant(network, F([1])), trt.ElementWiseOperation.SUB))
    mark(network, y=loop.add_loop_output(state.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0))
    limits = USUAL.limits(F([1.0]), F([1e-8]))

    assert limits.worst(F([1e-8]), F([3e-8])) is None
    assert trt.compare(network, {"x": F([1.00000012])}).agrees


def test_reference_ends_where_the_engine_does(network):
    loop = network.add_loop()
    state = loop.add_recurrence(network.add_input("x", trt.float32, ()))
    loop.add_trip_limit(combine(network, state.get_output(0), constant(network, 5, F), trt.ElementWiseOperation.LESS),
                        trt.TripLimit.WHILE)  # fmt: skip
    state.set_input(1, state.get_output(0))
    mark(network, y=loop.add_loop_output(state.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0))
    found = trt.compare(network, {"x": F(1)}, trt.compile(network, max_trips=7))

    assert "executes more than 7 iterations" in str(found.reference_error)


# ---------------------------------------------------------------------------- devices that round


def product(a, b):
    return (np.asarray(a, np.float64) @ b).astype(F)


def convolution(x, kernel):
    """The sums over windows of 3 x 3 of an image of 16 channels."""
    windows = np.lib.stride_tricks.sliding_window_view(np.asarray(x, np.float64).reshape(16, 16, 256), (3, 3), (0, 1))
    weights = np.asarray(kernel, np.float64).reshape(-1)[: 9 * 256 * 4].reshape(3, 3, 256, 4)
    return np.einsum("abcij,ijck->abk", windows, weights).astype(F)


@pytest.mark.parametrize("products", [TENSORFLOAT32, BFLOAT16])
@pytest.mark.parametrize("compute", [product, convolution])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_rounded_operands_agree_and_wrong_products_differ(products, compute, scale):
    random = np.random.default_rng(0)
    a, b = (F(scale) * random.normal(size=(256, 256)).astype(F) for _ in range(2))
    right, honest = compute(a, b), compute(*(rounded(x, BITS[products.name]) for x in (a, b)))
    tolerance = Tolerance(None, None, products)

    assert worst(honest, right, tolerance) is None
    assert worst(honest, right) is not None  # the tolerance of float32 would call it an error
    longer = b.copy()
    longer[7] = 0  # one number less in each sum
    for wrong in (compute(a, b.T), compute(a, longer), compute(a[::-1], b), F(1.2) * right, -right, 0 * right):
        assert worst(wrong, right, tolerance) is not None


def test_numbers_of_wider_epsilon_keep_their_tolerance():
    assert Tolerance(None, None, TENSORFLOAT32).limits(np.float16([1])) == USUAL.limits(np.float16([1]))
    assert Tolerance(None, None, TENSORFLOAT32).limits(np.int32([1])) == USUAL.limits(np.int32([1]))
    assert Tolerance(None, None, FLOAT32).limits(np.float64([1])) == USUAL.limits(np.float64([1]))
    assert Tolerance(1e-6, 0.0, TENSORFLOAT32).limits(F([1])) == Tolerance(1e-6, 0.0).limits(F([1]))


def recurrent(network):
    """y: the last state of a loop with a product; x and its root, which follow from none."""
    x = network.add_input("x", trt.float32, (1, 64))
    root = network.add_unary(x, trt.UnaryOperation.SQRT).get_output(0)
    weights = constant(network, np.random.default_rng(0).normal(size=(64, 64)).astype(F) / 8)
    loop = counted(network, 3)
    state = loop.add_recurrence(root)
    new = network.add_matrix_multiply(
        state.get_output(0), trt.MatrixOperation.NONE, weights, trt.MatrixOperation.NONE
    ).get_output(0)
    state.set_input(1, new)
    return mark(network, root=root, y=last(loop, state.get_output(0)))


INPUTS = {"x": np.linspace(0.1, 1, 64, dtype=F)[None]}


def test_what_follows_from_products_is_found_through_loops(network):
    recurrent(network)
    found = follow_from_products(network)

    assert [tensor in found for tensor in network.outputs] == [False, True]
    assert {tensor.producer.LABEL for tensor in found} == {"Matrix Multiply", "Recurrence", "LoopOutput"}


def test_products_of_other_types_are_not_rounded(network):
    for number, dtype in enumerate((trt.float16, trt.float64, trt.int32)):
        x = network.add_input(f"x{number}", dtype, (2, 2))
        network.add_matrix_multiply(x, trt.MatrixOperation.NONE, x, trt.MatrixOperation.NONE)

    assert follow_from_products(network) == set()


def test_plugin_of_jax_may_have_products(network):
    x = network.add_input("x", trt.float32, (2, 2))
    (output,) = network.add_plugin_v3([x], [], trt.JaxPlugin(lambda x: x @ x)).outputs

    assert follow_from_products(network) == {output}


@pytest.mark.parametrize("name", BITS)
def test_comparison_knows_the_device_that_rounds(network, monkeypatch, name):
    pretend(monkeypatch, name)
    engine = trt.compile(recurrent(network))
    found = trt.compare(network, INPUTS, engine)

    assert found.agrees
    assert found.products == name
    assert str(found).endswith(f"float32 products are those of {name}, which tolerances allow for")
    assert not trt.compare(network, INPUTS, engine, rtol=1e-6, atol=1e-6).agrees


def test_comparison_of_an_engine_without_tf32_is_one_of_float32(network, monkeypatch):
    pretend(monkeypatch, "bfloat16")
    found = trt.compare(recurrent(network), INPUTS, trt.compile(network, tf32=False))

    assert found.agrees
    assert (found.products, str(found)) == ("float32", f"{found.elements} elements agree")
    assert trt.compare(network, INPUTS, trt.compile(network, tf32=False), rtol=1e-6, atol=1e-6).agrees


def test_device_that_rounds_without_being_known_for_it_differs(network, monkeypatch):
    with monkeypatch.context() as patch:
        pretend(patch, "tensorfloat32")
        engine = trt.compile(recurrent(network))
        differs = trt.compare(network, INPUTS, engine, rtol=2**-11.5, atol=0)
    assert not differs.agrees


def test_only_tensors_that_follow_from_products_have_the_wider_tolerance(network, monkeypatch):
    pretend(monkeypatch, "tensorfloat32")
    # kernels of CPUs round nothing
    engine = trt.compile(recurrent(network), passes=trt.PASSES.keys() - {"recurrent_kernels"})
    tolerances = Tolerances(None, None, engine.network, engine.recipe)

    assert [tolerances.of(tensor).products.name for tensor in engine.network.outputs] == ["float32", "tensorfloat32"]
    root, y = agreements(engine(INPUTS), trt.evaluate(network, INPUTS), engine=engine)
    assert (root.products, y.products) == ("float32", "tensorfloat32")
    assert "with float32 products of tensorfloat32" in str(y)
    assert y.as_json()["products"] == "tensorfloat32"
    assert "products" not in str(root)
    assert root.agrees
    assert y.agrees
    assert y.relative > 1e-4


def test_network_without_products_is_compared_in_float32_everywhere(network, monkeypatch):
    pretend(monkeypatch, "bfloat16")
    x = network.add_input("x", trt.float32, (3,))
    found = trt.compare(mark(network, y=combine(network, x, x)), {"x": np.ones(3, F)})

    assert found.products == "float32"
