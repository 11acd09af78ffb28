"""Mistakes in calls of engines, of the reference and of pure functions; see ``mistakes.py``."""

import jax
import numpy as np

import netloop as trt
from tests.support.mistakes_in_loops import COUNT, LAST_VALUE, LESS, WHILE, add, mark, new_network, number, running_sum


def doubled():
    network = new_network()
    x = network.add_input("x", trt.float32, (3,))
    return mark(network, add(network, x, x))


def looping(kind):
    network = new_network()
    x = network.add_input("x", trt.float32, ())
    loop = network.add_loop()
    loop.name = "doubling"
    value = loop.add_recurrence(x)
    value.set_input(1, add(network, value.get_output(0), value.get_output(0)))
    below = network.add_elementwise(value.get_output(0), number(network, 100, np.float32), LESS)
    loop.add_trip_limit(below.get_output(0) if kind is WHILE else number(network, 3), kind)
    return mark(network, loop.add_loop_output(value.get_output(0), LAST_VALUE).get_output(0))


def list_for_an_input():
    """a list of Python numbers, which numpy makes float64"""
    trt.compile(doubled())({"x": [1.0, 2.0, 3.0]})


def float64_for_an_input():
    """an array of float64"""
    trt.evaluate(doubled(), {"x": np.ones(3)})


def other_shape():
    """an array of another shape"""
    trt.compile(doubled())({"x": np.ones((1, 3), np.float32)})


def input_missing():
    """an input is missing"""
    trt.compile(doubled())({})


def input_misspelt():
    """the name of an input is misspelt"""
    trt.compile(doubled())({"X": np.ones(3, np.float32)})


def array_without_name():
    """an array without the name of its input"""
    trt.compile(doubled())(np.ones(3, np.float32))


def engine_in_jit():
    """an engine in jax.jit"""
    engine = trt.compile(doubled())
    jax.jit(lambda x: engine({"x": x})["y"])(np.ones(3, np.float32))


def pure_function_without_weights():
    """a pure function without its weights"""
    network = new_network()
    x = network.add_input("x", trt.float32, ())
    function, _ = trt.to_jax(mark(network, add(network, x, number(network, 1, np.float32))))
    function({}, {"x": np.float32(1)})


def gradient_of_a_while_loop():
    """the gradient of a loop with a WHILE limit"""
    function, weights = trt.to_jax(looping(WHILE))
    jax.grad(lambda x: function(weights, {"x": x})["y"])(np.float32(1))


def loop_that_never_ends():
    """a loop has more than max_trips iterations"""
    trt.compile(looping(COUNT), max_trips=2)({"x": np.float32(1)})


def check_of_no_network():
    """an engine instead of a network"""
    trt.check(trt.compile(doubled()))


def invalid_network_compiled():
    """a network with a mistake is compiled"""
    network = new_network()
    trt.compile(mark(network, running_sum(network, network.add_loop(), number(network, 1))))
