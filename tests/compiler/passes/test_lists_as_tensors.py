"""Lists of pure functions are arrays with a row for each tensor, with derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import netloop as trt
from netloop.model.formulas import FormulaBuilder
from tests.support.examples import mostly_slow
from tests.support.networks import COUNT, WHILE

RANDOM = np.random.default_rng(5)
X, W = RANDOM.standard_normal((2, 3)), RANDOM.standard_normal((3, 3))
BOUND = {"decoder": 6}


@pytest.fixture(autouse=True)
def doubles():
    with jax.enable_x64(True):
        yield


def decoder(end, read=None, begin=0, appended=1, count=None, least=None):
    """A list of states, each tanh((the last state + what is read of the list) @ w), and y, what is made of it."""
    network = trt.INetworkDefinition()
    make = FormulaBuilder(network)
    x, w = network.add_input("x", trt.float64, (2, 3)), network.add_input("w", trt.float64, (3, 3))
    loop = network.add_loop()
    loop.name = "decoder"
    state = loop.add_recurrence(x)
    states = loop.add_recurrence(make.sequence([x] * begin, trt.float64))
    states.keeps_shape = False
    now, listed = state.get_output(0), states.get_output(0)
    after = make.activation(trt.ActivationType.TANH, make.matmul(make.add(now, read(make, listed)) if read else now, w))
    state.set_input(1, after)
    for number in range(appended):
        listed = make.sequence_insert(listed, make.mul(after, np.float64(number + 1)))
    states.set_input(1, listed)
    if least is not None:
        loop.add_trip_limit(make.greater(make.sum(make.mul(now, now), [0, 1]), np.float64(least)), WHILE)
    elif count is None:
        loop.add_trip_limit(network.add_input("n", trt.int64, ()), COUNT)
    else:
        loop.add_trip_limit(make.constant(np.int64(count)), COUNT)
    y = end(make, make.last(loop, states))
    y.name = "y"
    network.mark_output(y)
    return network


def at(place):
    return lambda make, states: make.sequence_at(states, make.constant(np.int64(place)))


def joined(axis, new_axis):
    return lambda make, states: make.sequence_concat(states, axis, new_axis)


def mean(make, states):
    """Attention without weights: it reads a list whole."""
    rows = make.sequence_concat(states, 0, True)
    return make.output(make.network.add_reduce(rows, trt.ReduceOperation.AVG, 1, False))


def length(make, states):
    return make.cast(make.sequence_length(states), np.float64)


def logarithms(make, states):
    """The sum of logarithms, which have no derivatives by the factor where rows of zeros are padding."""
    factor = make.sum(make.network.inputs[1], [0, 1])
    rows = make.mul(make.sequence_concat(states, 0, False), factor)
    return make.sum(make.unary(trt.UnaryOperation.LOG, make.mul(rows, rows)), [0, 1])


def itself(make, states):
    return states


def whole(value):
    """The value of the reference as one array."""
    return np.stack(value) if isinstance(value, list | tuple) else np.asarray(value)


def counting(outputs):
    """y without its padding, which has to be zeros."""
    y = np.asarray(outputs["y"])
    if "y.shape" not in outputs:
        return y
    part = tuple(map(slice, np.asarray(outputs["y.shape"])))
    padding = y.copy()
    padding[part] = 0
    assert not padding.any()
    return y[part]


def check(network, **more):
    """Compare values with the reference, and derivatives with its differences."""
    function, weights = trt.to_jax(network, bound=BOUND)
    inputs = {"x": X, "w": W, **more}
    wanted = whole(trt.evaluate(network, inputs)["y"])
    y = counting(function(weights, inputs))
    factors = np.zeros(y.shape) + np.arange(1.0, y.size + 1).reshape(y.shape)

    np.testing.assert_allclose(y, wanted, 1e-12)

    def total(w):
        result = function(weights, {**inputs, "w": w})["y"]
        # the padding takes part too
        return (result[tuple(map(slice, y.shape))] * (factors - 1)).sum() + result.sum()

    def moved(step):
        return (whole(trt.evaluate(network, {**inputs, "w": W + step})["y"]) * factors).sum()

    steps = 1e-6 * np.eye(9).reshape(9, 3, 3)
    differences = np.reshape([(moved(step) - moved(-step)) / 2e-6 for step in steps], (3, 3))
    np.testing.assert_allclose(jax.jit(jax.grad(total))(W), differences, 1e-5, 1e-6)


@pytest.mark.parametrize(
    "end",
    mostly_slow(
        5, [joined(1, True), joined(1, False), at(-1), length, mean, joined(0, False), at(0), itself, logarithms]
    ),
    ids=["stacked", "joined inside", "last", "length", "mean", "joined", "first", "list", "logarithms"],
)
def test_list_that_is_read_after_its_loop(end):
    check(decoder(end), n=np.int64(3))


@pytest.mark.parametrize("read", mostly_slow(2, [at(-1), mean, at(0), length]), ids=["last", "mean", "first", "length"])
def test_list_that_is_read_in_its_loop(read):
    check(decoder(joined(0, True), read, begin=2), n=np.int64(3))


@pytest.mark.parametrize("limits", [{"count": 4}, {"least": 3.92}], ids=["COUNT", "WHILE"])
def test_loops_of_other_limits(limits):
    check(decoder(joined(0, False), mean, begin=1, appended=2, **limits))


def test_known_number_of_iterations_needs_no_bound_and_has_no_padding():
    function, weights = trt.to_jax(decoder(joined(0, True), count=4))

    outputs = function(weights, {"x": X, "w": W})
    assert [*outputs] == ["y"]
    assert outputs["y"].shape == (4, 2, 3)


def test_gradients_are_those_of_a_scan_by_hand():
    function, weights = trt.to_jax(decoder(joined(0, True), count=4))

    def by_hand(x, w):
        def step(state, _):
            after = jnp.tanh(state @ w)
            return after, after

        return (lax.scan(step, x, None, length=4)[1] ** 2).sum()

    def total(x, w):
        return (function(weights, {"x": x, "w": w})["y"] ** 2).sum()

    for got, wanted in zip(jax.grad(total, (0, 1))(X, W), jax.grad(by_hand, (0, 1))(X, W), strict=True):
        np.testing.assert_allclose(got, wanted, 1e-12)


def test_rows_of_a_batch_have_lengths_of_their_own():
    function, weights = trt.to_jax(decoder(joined(0, True)), bound=BOUND)
    outputs = jax.vmap(lambda n: function(weights, {"x": X, "w": W, "n": n}))(np.int64([0, 2, 6]))

    assert outputs["y"].shape == (3, 6, 2, 3)
    assert outputs["y.shape"][:, 0].tolist() == [0, 2, 6]


def test_function_is_exported():
    network = decoder(joined(0, True))
    function, weights = trt.to_jax(network, bound=BOUND)
    inputs = {"x": X, "w": W, "n": np.int64(2)}
    program = trt.stablehlo.exported(network, bound=BOUND)

    np.testing.assert_array_equal(program.call(inputs)["y"], function(weights, inputs)["y"])


def test_bound_that_is_too_small_gives_nan():
    function, weights = trt.to_jax(decoder(joined(0, True)), bound={"decoder": 2})

    def total(w):
        return function(weights, {"x": X, "w": w, "n": np.int64(3)})["y"].sum()

    assert np.isnan(total(W))
    assert np.isnan(jax.grad(total)(W)).all()


# ---------------------------------------------------------------------------- refused


def refused(network, **options):
    function, weights = trt.to_jax(network, **options)
    with pytest.raises(trt.NetworkError) as caught:
        function(weights, {"x": X, "w": W, "n": np.int64(2)})
    return caught.value.findings[0]


@pytest.mark.parametrize("read", [None, at(-1)])
def test_list_without_a_bound_is_refused_with_the_bound_to_give(read):
    finding = refused(decoder(joined(0, True), read, begin=1))

    assert finding.code == "NL674"
    assert "bound={'decoder': n}" in finding.fix


def erased(make, states):
    return make.sequence_concat(make.network.add_sequence_erase(states).get_output(0), 0, True)


def inserted(make, states):
    row = make.constant(X)
    return make.sequence_concat(make.network.add_sequence_insert(states, row, make.constant(np.int64(1))).outputs[0], 0)


def other_shape(make, states):
    longer = make.constant(np.ones((4, 3)))
    return make.sequence_concat(make.network.add_sequence_insert(states, longer).get_output(0), 0)


def chosen(make, states):
    choice = make.network.add_if_conditional()
    choice.set_condition(make.greater(make.network.add_sequence_length(states).get_output(0), np.int64(3)))
    longer = make.network.add_sequence_insert(states, make.constant(X)).get_output(0)
    return make.sequence_concat(choice.add_output(longer, states).get_output(0), 0)


@pytest.mark.parametrize(
    ("end", "what"),
    [
        (chosen, "makes a list in a branch of a conditional"),
        (erased, "ISequenceEraseLayer"),
        (inserted, "inserts a tensor between others"),
        (other_shape, "have no common shape"),
    ],
)
def test_other_lists_are_refused_with_the_reason(end, what):
    finding = refused(decoder(end), bound=BOUND)

    assert finding.code == "NL675"
    assert what in finding.what


def test_other_reason_is_given_where_the_lists_are_none():
    def selected(make, states):
        return make.cast(make.nonzero(at(0)(make, states)), np.float64)

    function, weights = trt.to_jax(decoder(selected, count=2))

    with pytest.raises(trt.NetworkError, match=r"(?s)NL501: .*INonZeroLayer") as caught:
        function(weights, {"x": X, "w": W})
    assert len(caught.value.findings) == 1
