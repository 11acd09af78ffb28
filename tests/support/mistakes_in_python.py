"""Mistakes of those who write a network as if tensors were arrays; see ``mistakes.py``."""

import jax
import numpy as np

import netloop as trt
from tests.support.mistakes_in_calls import doubled
from tests.support.mistakes_in_loops import new_network


def tensor():
    return new_network().add_input("x", trt.float32, (3,))


def sum_of_tensors():
    """+ of two tensors"""
    return tensor() + tensor()


def number_times_tensor():
    """a number times a tensor"""
    return 2 * tensor()


def array_plus_tensor():
    """an array of numpy plus a tensor"""
    return np.ones(3, np.float32) + tensor()


def matrix_product():
    """@ of two tensors"""
    return tensor() @ tensor()


def negative_tensor():
    """- of a tensor"""
    return -tensor()


def tensor_in_if():
    """an if statement that asks for the value of a tensor"""
    return 1 if tensor() > 0 else 0


def tensor_at_most():
    """<= of tensors"""
    return tensor() <= 1


def loop_over_a_tensor():
    """a for statement over a tensor"""
    return [row for row in tensor()]  # noqa: C416


def element_of_a_tensor():
    """an element of a tensor, in brackets"""
    return tensor()[0]


def length_of_a_tensor():
    """len of a tensor"""
    return len(tensor())


def tensor_as_array():
    """a tensor as an array of numpy"""
    return np.asarray(tensor()) + 1


def tensor_as_number():
    """a tensor as a number of Python"""
    return float(tensor())


def sum_of_layers():
    """+ of two layers"""
    layer = doubled()[0]
    return layer + layer


def activation_of_another_library():
    """a layer by its name in another library"""
    return new_network().add_relu(tensor())


def operator_of_another_library():
    """an operator by its name in another library"""
    return new_network().add_matmul(tensor(), tensor())


def cell_of_another_library():
    """a recurrent cell by its name in another library"""
    return new_network().add_lstm(tensor(), 256)


def open_length_as_none():
    """None for an open length"""
    return new_network().add_input("x", trt.float32, (None, 3))


def open_length_as_name():
    """a name for an open length"""
    return new_network().add_input("x", trt.float32, ("batch", 3))


def length_as_shape():
    """a length instead of a shape"""
    return new_network().add_input("x", trt.float32, 3)


def layer_that_is_not_there():
    """the number of a layer that is not there"""
    return doubled()[7]


def file_in_place_of_a_network():
    """the name of a file instead of a network"""
    return trt.compile("model.onnx")


def function_in_place_of_a_network():
    """a function instead of a network"""
    return trt.compile(jax.numpy.sin)


def function_without_examples():
    """a JAX function without examples of its arguments"""
    return trt.from_jax(lambda x, y: x + y, np.ones(3, np.float32))


def text_as_example():
    """a text as the example of an argument"""
    return trt.from_jax(lambda x: x, "x")


def array_as_address():
    """an array instead of an address"""
    return trt.compile(doubled()).create_execution_context().set_tensor_address("x", np.ones(3, np.float32))


def file_as_plan():
    """the name of a file instead of the bytes of a plan"""
    return trt.Runtime(trt.Logger()).deserialize_cuda_engine("model.plan")
