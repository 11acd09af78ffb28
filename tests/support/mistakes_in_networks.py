"""Mistakes in the arguments of layers, and in what a network needs; see ``mistakes.py``."""

import numpy as np

import netloop as trt
from tests.support.mistakes_in_loops import SUM, add, mark, new_network, number


def image(network):
    return network.add_input("x", trt.float32, (1, 3, 8, 8))


# ---------------------------------------------------------------------------- networks


def no_output():
    """a network has no output"""
    network = new_network()
    add(network, network.add_input("x", trt.int32, ()), number(network, 1))
    return network


def input_of_another_network():
    """a tensor of another network"""
    add(new_network(), number(new_network(), 1), number(new_network(), 1))


def two_inputs_of_one_name():
    """two inputs of one name"""
    network = new_network()
    network.add_input("x", trt.int32, ())
    network.add_input("x", trt.int32, ())


def two_outputs_of_one_name():
    """two outputs of one name"""
    network = new_network()
    x = network.add_input("x", trt.int32, ())
    return mark(network, add(network, mark(network, add(network, x, x)) and x, x))


def misspelt_method():
    """the name of a method is misspelt"""
    new_network().add_elementwize(None, None, SUM)


def misspelt_attribute():
    """the name of an attribute is misspelt"""
    network = new_network()
    network.add_softmax(image(network)).axsi = 1


def misspelt_member():
    """the name of a member of an enumeration is misspelt"""
    return trt.ElementWiseOperation.ADD


def output_without_index():
    """the output of a layer as an attribute"""
    network = new_network()
    return network.add_identity(image(network)).output


def layer_marked():
    """a layer is marked instead of its output"""
    network = new_network()
    network.mark_output(network.add_identity(image(network)))


# ---------------------------------------------------------------------------- types and numbers


def numpy_type():
    """numpy's type instead of TensorRT's"""
    new_network().add_input("x", np.float32, (3,))


def numpy_dtype():
    """a dtype of numpy instead of TensorRT's type"""
    new_network().add_cast(number(new_network(), 1), np.dtype("float16"))


def type_as_text():
    """a type as text"""
    new_network().add_input("x", "float32", (3,))


def int_and_float():
    """the sum of int32 and float32"""
    network = new_network()
    return mark(network, add(network, number(network, 1), number(network, 1, np.float32)))


def python_number():
    """a Python number instead of a tensor"""
    network = new_network()
    network.add_elementwise(image(network), 2.0, SUM)


def numpy_array():
    """a numpy array instead of a tensor"""
    network = new_network()
    network.add_elementwise(image(network), np.ones((1, 1, 1, 1), np.float32), SUM)


def list_as_weights():
    """a list instead of weights"""
    new_network().add_constant((3,), [1.0, 2.0, 3.0])


def float64_weights():
    """weights that numpy made float64"""
    network = new_network()
    x = network.add_input("x", trt.float32, (3,))
    return mark(network, add(network, x, network.add_constant((3,), np.array([1.0, 2.0, 3.0])).get_output(0)))


def too_few_weights():
    """fewer weights than the shape has"""
    network = new_network()
    return mark(network, network.add_constant((2, 3), np.ones(4, np.float32)).get_output(0))


def ranks_that_differ():
    """two tensors of different ranks are added"""
    network = new_network()
    bias = network.add_constant((8,), np.ones(8, np.float32)).get_output(0)
    return mark(network, add(network, image(network), bias))


def shapes_that_differ():
    """two tensors of different shapes are added"""
    network = new_network()
    bias = network.add_constant((1, 1, 1, 7), np.ones(7, np.float32)).get_output(0)
    return mark(network, add(network, image(network), bias))


# ---------------------------------------------------------------------------- axes, kernels and sizes


def axes_as_tuple():
    """axes as a tuple instead of a bit mask"""
    network = new_network()
    network.add_reduce(image(network), trt.ReduceOperation.SUM, (0, 1), False)


def axis_as_mask():
    """an axis instead of the bit mask of it"""
    network = new_network()
    return mark(network, network.add_reduce(image(network), trt.ReduceOperation.SUM, 0, False).get_output(0))


def axis_beyond_the_rank():
    """an axis that the tensor does not have"""
    network = new_network()
    layer = network.add_concatenation([image(network)])
    layer.axis = 4
    return mark(network, layer.get_output(0))


def gather_axis_beyond_the_rank():
    """the axis of a gather that the tensor does not have"""
    network = new_network()
    return mark(network, network.add_gather(image(network), number(network, 0), 4).get_output(0))


def mask_beyond_the_rank():
    """a bit mask of an axis that the tensor does not have"""
    network = new_network()
    return mark(network, network.add_reduce(image(network), trt.ReduceOperation.SUM, 1 << 4, False).get_output(0))


def tensor_in_place_of_a_list():
    """one tensor instead of a list of tensors"""
    network = new_network()
    network.add_concatenation(image(network))


def kernel_of_another_size():
    """the weights of a convolution do not fit its kernel"""
    network = new_network()
    weights = np.ones((4, 3, 5, 5), np.float32)
    return mark(network, network.add_convolution_nd(image(network), 4, (3, 3), weights).get_output(0))


def kernel_larger_than_the_image():
    """the kernel of a convolution is larger than the image"""
    network = new_network()
    weights = np.ones((4, 3, 9, 9), np.float32)
    return mark(network, network.add_convolution_nd(image(network), 4, (9, 9), weights).get_output(0))


def kernel_size_as_int():
    """the size of a kernel as one number"""
    network = new_network()
    network.add_convolution_nd(image(network), 4, 3, np.ones((4, 3, 3, 3), np.float32))


def matrices_that_do_not_fit():
    """matrices of sizes that do not fit"""
    network = new_network()
    a, b = network.add_input("a", trt.float32, (2, 3)), network.add_input("b", trt.float32, (2, 3))
    none = trt.MatrixOperation.NONE
    return mark(network, network.add_matrix_multiply(a, none, b, none).get_output(0))


def matrix_multiply_without_operations():
    """add_matrix_multiply as in numpy"""
    network = new_network()
    a = network.add_input("a", trt.float32, (2, 3))
    network.add_matrix_multiply(a, a)


def reshape_of_another_size():
    """a reshape to another number of elements"""
    network = new_network()
    layer = network.add_shuffle(image(network))
    layer.reshape_dims = (3, 8, 9)
    return mark(network, layer.get_output(0))


def permutation_that_repeats():
    """a permutation that names an axis twice"""
    network = new_network()
    layer = network.add_shuffle(image(network))
    layer.first_transpose = (0, 1, 1, 2)
    return mark(network, layer.get_output(0))


def slice_beyond_the_end():
    """a slice that leaves its input"""
    network = new_network()
    x = network.add_input("x", trt.float32, (4,))
    return mark(network, network.add_slice(x, (2,), (4,), (1,)).get_output(0))


def slice_of_another_rank():
    """a slice with fewer numbers than axes"""
    network = new_network()
    return mark(network, network.add_slice(image(network), (0, 0), (1, 1), (1, 1)).get_output(0))


def operation_of_another_kind():
    """an operation of another enumeration"""
    network = new_network()
    x = image(network)
    network.add_elementwise(x, x, trt.UnaryOperation.EXP)


def elementwise_swapped():
    """the arguments of add_elementwise are swapped"""
    network = new_network()
    x = image(network)
    network.add_elementwise(SUM, x, x)


def activation_of_ints():
    """an activation of int32"""
    network = new_network()
    x = network.add_input("x", trt.int32, (3,))
    return mark(network, network.add_activation(x, trt.ActivationType.TANH).get_output(0))


def sqrt_of_ints():
    """a square root of int32"""
    network = new_network()
    x = network.add_input("x", trt.int32, (3,))
    return mark(network, network.add_unary(x, trt.UnaryOperation.SQRT).get_output(0))
