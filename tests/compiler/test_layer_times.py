"""The times of layers, from the profiler of JAX."""

import numpy as np
import pytest

import netloop as trt
from netloop.compiler.layer_times import TimedOperation, own_times
from tests.support.networks import constant, counted, last, mark

X = np.ones((128, 128), np.float32)


@pytest.fixture
def products(network):
    """A loop with a product and a tanh that are operations of their own, and a sum after it."""
    x = network.add_input("x", trt.float32, X.shape)
    loop = counted(network, 3)
    loop.name = "powers/of x"
    state = loop.add_recurrence(x)
    none = trt.MatrixOperation.NONE
    product = network.add_matrix_multiply(state.get_output(0), none, constant(network, X), none)
    product.name = "product/1"
    tanh = network.add_activation(product.get_output(0), trt.ActivationType.TANH)
    tanh.name = "tanh"
    state.set_input(1, tanh.get_output(0))
    total = network.add_reduce(last(loop, state.get_output(0)), trt.ReduceOperation.SUM, 3, False)
    total.name = "total"
    return mark(network, y=total.get_output(0))


def test_layers_have_the_time_of_their_operations(products):
    # a kernel is one operation
    engine = trt.compile(products, passes=trt.PASSES.keys() - {"recurrent_kernels"})
    seconds = engine.layer_times({"x": X}, calls=2)

    assert {"product/1", "total"} <= {*seconds}
    assert [*seconds] == sorted(seconds, key=lambda name: seconds[name], reverse=True)
    assert all(0 <= duration < 10 for duration in seconds.values())


def test_loop_that_is_one_operation_has_its_time(network):
    n = network.add_input("n", trt.int32, ())
    loop = network.add_loop()
    loop.name = "doubling"
    loop.add_trip_limit(n, trt.TripLimit.COUNT)
    state = loop.add_recurrence(constant(network, np.float32(1)))
    twice = network.add_elementwise(state.get_output(0), state.get_output(0), trt.ElementWiseOperation.SUM)
    state.set_input(1, twice.get_output(0))
    mark(network, y=last(loop, state.get_output(0)))

    assert "doubling" in trt.compile(network).layer_times({"n": np.int32(20)}, calls=1)


def test_steps_on_the_host_have_no_times(network):
    x = network.add_input("x", trt.float32, (3,))
    mark(network, y=network.add_non_zero(x).get_output(0))

    assert trt.compile(network).layer_times({"x": np.float32([1, 0, 2])}) == {}


def test_time_of_a_loop_is_without_that_of_its_operations():
    spans = ("while", 0, 100), ("add", 10, 30), ("add", 40, 60), ("inner", 70, 90), ("mul", 75, 80), ("copy", 100, 107)

    seconds = own_times(TimedOperation(*span) for span in spans)
    assert [(name, round(1e9 * duration)) for name, duration in seconds] == [
        ("while", 40), ("add", 20), ("add", 20), ("inner", 15), ("mul", 5), ("copy", 7),
    ]  # fmt: skip
