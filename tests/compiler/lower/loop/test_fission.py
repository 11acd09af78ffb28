"""Loop fission: which layers are batched over iterations."""

import jax
import numpy as np
import pytest

import netloop as trt
from netloop.compiler.lower.loop import fission
from tests.support.calls import calls_in
from tests.support.devices import assert_allclose
from tests.support.findings import certain_errors_ignored
from tests.support.networks import combine, constant, counted, last, mark, stacked

TRIPS, LOOP = 5, "loop"
X = np.arange(TRIPS * 6, dtype=np.float32).reshape(TRIPS, 2, 3)
WEIGHTS = np.array([[1, 0], [2, -1], [0, 3]], np.float32)


@pytest.fixture(autouse=True)
def no_product_is_too_small(monkeypatch):
    monkeypatch.setattr(fission, "SMALLEST_PRODUCT", 1)


def products_of_states(is_doubled):
    """y: the sum of the rows of x before each iteration, multiplied by weights and, in an inner loop, doubled."""
    network = trt.INetworkDefinition()
    loop = counted(network, TRIPS)
    loop.name = LOOP
    state = loop.add_recurrence(constant(network, np.zeros((2, 3), np.float32)))
    x = loop.add_iterator(network.add_input("x", trt.float32, X.shape)).get_output(0)
    state.set_input(1, combine(network, state.get_output(0), x))
    plain, weights = trt.MatrixOperation.NONE, constant(network, WEIGHTS)
    row = network.add_matrix_multiply(state.get_output(0), plain, weights, plain).get_output(0)
    if is_doubled:
        inner = counted(network, 2)
        total = inner.add_recurrence(constant(network, np.zeros((2, 2), np.float32)))
        total.set_input(1, combine(network, total.get_output(0), row))
        row = last(inner, total.get_output(0))
    return mark(network, y=stacked(loop, row, constant(network, TRIPS, np.int32)))


@pytest.mark.parametrize(
    ("is_doubled", "moved"),
    [
        pytest.param(False, [trt.IMatrixMultiplyLayer], id="after the loop"),
        pytest.param(True, [], id="in its iteration, as an inner loop reads it"),
    ],
)
def test_product_of_a_state_is_formed(is_doubled, moved):
    engine = trt.compile(products_of_states(is_doubled))
    sums = np.cumsum(X, axis=0) - X

    assert [type(layer) for layer in engine.batched_layers[LOOP]] == moved
    assert np.asarray(engine({"x": X})["y"]).tolist() == (sums @ WEIGHTS * (1 + is_doubled)).tolist()


def test_row_from_outside_the_loop_is_stacked_with_a_product_that_is_moved():
    network = trt.INetworkDefinition()
    loop = counted(network, TRIPS)
    loop.name = LOOP
    x = loop.add_iterator(network.add_input("x", trt.float32, X.shape)).get_output(0)
    plain, weights = trt.MatrixOperation.NONE, constant(network, WEIGHTS)
    row = network.add_matrix_multiply(x, plain, weights, plain).get_output(0)
    length = constant(network, TRIPS, np.int32)
    same = network.add_input("same", trt.float32, (2,))
    mark(network, y=stacked(loop, row, length), z=stacked(loop, same, length))
    engine = trt.compile(network)
    outputs = engine({"x": X, "same": np.array([1, 2], np.float32)})

    assert [type(layer) for layer in engine.batched_layers[LOOP]] == [trt.IMatrixMultiplyLayer]
    assert np.asarray(outputs["z"]).tolist() == [[1, 2]] * TRIPS


def test_product_before_the_loop_may_be_the_next_value_of_a_state():
    network = trt.INetworkDefinition()
    loop = counted(network, TRIPS)
    loop.name = LOOP
    x = loop.add_iterator(network.add_input("x", trt.float32, X.shape)).get_output(0)
    plain, weights = trt.MatrixOperation.NONE, constant(network, WEIGHTS)
    before = loop.add_recurrence(constant(network, np.zeros((2, 2), np.float32)))
    before.set_input(1, network.add_matrix_multiply(x, plain, weights, plain).get_output(0))
    mark(network, y=stacked(loop, before.get_output(0), constant(network, TRIPS, np.int32)))
    engine = trt.compile(network)

    assert [type(layer) for layer in engine.batched_layers[LOOP]] == [trt.IMatrixMultiplyLayer]
    assert np.asarray(engine({"x": X})["y"]).tolist() == [np.zeros((2, 2)).tolist(), *(X @ WEIGHTS)[:-1].tolist()]


@pytest.mark.parametrize(("reads_past_the_end", "moved"), [(False, 1), (True, 0)])
def test_product_is_formed_before_the_loop_unless_an_inner_loop_can_fail(reads_past_the_end, moved):
    network = trt.INetworkDefinition()
    loop, inner = counted(network, TRIPS), counted(network, 2)
    loop.name = LOOP
    x = loop.add_iterator(network.add_input("x", trt.float32, X.shape)).get_output(0)
    plain = trt.MatrixOperation.NONE
    row = network.add_matrix_multiply(x, plain, constant(network, WEIGHTS), plain).get_output(0)
    state, total = (other.add_recurrence(constant(network, np.zeros((2, 2), np.float32))) for other in (loop, inner))
    element = inner.add_iterator(constant(network, np.ones((2, 2, 2), np.float32))).get_output(0)
    total.set_input(1, combine(network, combine(network, total.get_output(0), element), state.get_output(0)))
    doubled = last(inner, combine(network, total.get_output(0), element if reads_past_the_end else 2.0))
    state.set_input(1, combine(network, row, doubled))
    with certain_errors_ignored():
        engine = trt.compile(mark(network, y=last(loop, state.get_output(0))))

    assert len(engine.batched_layers[LOOP]) == moved


def states_in_a_ring(size):
    """y0, y1, ..: the last values of states of which each takes the sum of itself and the next."""
    network = trt.INetworkDefinition()
    loop = counted(network, 2)
    states = [loop.add_recurrence(constant(network, np.full(2, index + 0.5, np.float32))) for index in range(size)]
    for state, following in zip(states, [*states[1:], states[0]], strict=True):
        state.set_input(1, combine(network, state.get_output(0), following.get_output(0)))
    return mark(network, **{f"y{number}": last(loop, state.get_output(0)) for number, state in enumerate(states)})


def test_twice_the_states_take_twice_the_work_of_tracing():
    trt.compile(states_in_a_ring(2))  # what JAX does only once
    small, large = (_Traced(states_in_a_ring(size)) for size in (40, 80))

    assert calls_in(large.trace) < 2.5 * calls_in(small.trace)


class _Traced:
    def __init__(self, network):
        self.function, self.weights = trt.to_jax(network)

    def trace(self):
        jax.make_jaxpr(self.function)(self.weights, {})


def test_layers_that_several_last_values_need_are_lowered_once():
    network = trt.INetworkDefinition()
    loop = counted(network, 3)
    state = loop.add_recurrence(network.add_input("x", trt.float32, (2,)))
    half = network.add_activation(state.get_output(0), trt.ActivationType.TANH).get_output(0)
    state.set_input(1, half)
    mark(network, a=last(loop, half), b=last(loop, combine(network, half, half)))
    function, weights = trt.to_jax(network, passes=[])
    traced = jax.make_jaxpr(function)(weights, {"x": np.ones(2, np.float32)})

    assert str(traced).count(" tanh ") == 2, "one in the iterations, and one after them"
    expected = trt.evaluate(network, {"x": np.ones(2, np.float32)})
    found = trt.compile(network)({"x": np.ones(2, np.float32)})
    assert_allclose(found["a"], expected["a"], rtol=1e-6)
    assert_allclose(found["b"], expected["b"], rtol=1e-6)
