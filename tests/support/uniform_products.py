"""Products by an operand that is one number to XLA, followed by a reduction: wrong in XLA's CPU, from jax 0.10.2 on."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from onnx import parser

import netloop as trt
import netloop.onnx
from tests.support import networks

F32 = np.float32
NUMBER = 0.01
Maker = Callable[[trt.INetworkDefinition, tuple[int, ...]], trt.ITensor]


def constant(network, values):
    return networks.constant(network, values, F32)


def repeated(network, tensor, shape):
    """A tensor of one element, repeated by a slice of stride 0."""
    zeros = [0] * len(shape)
    return network.add_slice(tensor, zeros, shape, zeros).get_output(0)


def of_constant(network, shape):
    return repeated(network, constant(network, np.full([1] * len(shape), NUMBER)), shape)


def of_input(network, shape):
    name = f"number{len(network.inputs)}"
    return repeated(network, network.add_input(name, trt.float32, [1] * len(shape)), shape)


def computed(network, shape):
    exponential = network.add_unary(of_input(network, shape), trt.UnaryOperation.EXP).get_output(0)
    return networks.combine(network, exponential, of_constant(network, shape))


def transposed(network, shape):
    layer = network.add_shuffle(of_constant(network, shape[::-1]))
    layer.first_transpose = range(len(shape))[::-1]
    return layer.get_output(0)


def joined(network, shape):
    halves = [of_constant(network, (shape[0] // 2, *shape[1:])) for _ in range(2)]
    layer = network.add_concatenation(halves)
    layer.axis = 0
    return layer.get_output(0)


def weights(network, shape):
    return constant(network, np.full(shape, NUMBER))


def selected(network, shape):
    condition = network.add_constant([1] * len(shape), np.ones([1] * len(shape), bool)).get_output(0)
    return network.add_select(condition, of_constant(network, shape), of_input(network, shape)).get_output(0)


MAKERS: dict[str, Maker] = {
    maker.__name__: maker for maker in (of_constant, of_input, computed, transposed, joined, weights, selected)
}


def reduce(network, product, operation, axis):
    return network.add_reduce(product, operation, 1 << axis, False).get_output(0)


def softmax_of_columns(network, product):
    layer = network.add_softmax(product)
    layer.axes = 1 << 0
    return layer.get_output(0)


FOLLOWERS = {
    "sum of rows": lambda n, y: reduce(n, y, trt.ReduceOperation.SUM, 0),
    "mean of columns": lambda n, y: reduce(n, y, trt.ReduceOperation.AVG, 1),
    "maximum of rows": lambda n, y: reduce(n, y, trt.ReduceOperation.MAX, 0),
    "softmax": softmax_of_columns,
    "sum of activations": lambda n, y: reduce(
        n, n.add_activation(y, trt.ActivationType.TANH).get_output(0), trt.ReduceOperation.SUM, 0
    ),
}


def matrix_network(maker, rows=256, inner=64, columns=64, op=trt.MatrixOperation.NONE, followers=tuple(FOLLOWERS)):
    """A product for each follower, of an input of its own."""
    network = trt.INetworkDefinition()
    outputs = {}
    for position, name in enumerate(followers):
        x = network.add_input(f"x{position}", trt.float32, (rows, inner))
        shape = (columns, inner) if op is trt.MatrixOperation.TRANSPOSE else (inner, columns)
        product = network.add_matrix_multiply(x, trt.MatrixOperation.NONE, maker(network, shape), op).get_output(0)
        outputs[name.replace(" ", "_")] = FOLLOWERS[name](network, product)
    return networks.mark(network, **outputs)


def convolution_network(maker, size=3):
    """The mean of each map of a convolution by a kernel of one number."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (2, 8, 32, 32))
    layer = network.add_convolution_nd(x, 16, (size, size), trt.Weights())
    layer.set_input(1, maker(network, (16, 8, size, size)))
    means = network.add_reduce(layer.get_output(0), trt.ReduceOperation.AVG, 1 << 2 | 1 << 3, False)
    return networks.mark(network, means=means.get_output(0))


def einsum_network(maker):
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (4, 64, 64))
    product = network.add_einsum([maker(network, (64, 64)), x], "jk,bij->bik").get_output(0)
    return networks.mark(network, sums=reduce(network, product, trt.ReduceOperation.SUM, 1))


def batch_network():
    """A product by one number in each batch."""
    network = trt.INetworkDefinition()
    x, numbers = network.add_input("x", trt.float32, (8, 256, 16)), network.add_input("numbers", trt.float32, (8, 1, 1))
    repeats = network.add_slice(numbers, [0, 0, 0], (8, 16, 2), [1, 0, 0]).get_output(0)
    none = trt.MatrixOperation.NONE
    product = network.add_matrix_multiply(x, none, repeats, none).get_output(0)
    return networks.mark(network, sums=reduce(network, product, trt.ReduceOperation.SUM, 1))


def loop_network(maker):
    """The product in the body of a loop, with the operand as a state that never changes."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (256, 64))
    loop = networks.counted(network, 3)
    operand = loop.add_recurrence(maker(network, (64, 64)))
    operand.set_input(1, operand.get_output(0))
    total = loop.add_recurrence(constant(network, np.zeros(64)))
    none = trt.MatrixOperation.NONE
    product = network.add_matrix_multiply(x, none, operand.get_output(0), none).get_output(0)
    sums = reduce(network, product, trt.ReduceOperation.SUM, 0)
    total.set_input(1, networks.combine(network, total.get_output(0), sums))
    return networks.mark(network, total=networks.last(loop, total.get_output(0)))


def onnx_network():
    """A product by ONNX's ConstantOfShape."""
    text = f"""<ir_version: 8, opset_import: ["" : 13]> g (float[256,64] x) => (float[64] y) {{
        s = Constant <value = int64[2] {{64, 64}}> ()
        w = ConstantOfShape <value = float[1] {{{NUMBER}}}> (s)
        p = MatMul (x, w)
        a = Constant <value = int64[1] {{0}}> ()
        y = ReduceSum <keepdims = 0> (p, a)
    }}"""
    return netloop.onnx.load(parser.parse_model(text))


def jax_network():
    """A product by a filled array of JAX."""
    return trt.from_jax(lambda x: (x @ jnp.full((64, 64), NUMBER)).sum(0), jax.ShapeDtypeStruct((256, 64), F32))


def feeds_of(network):
    """Normal numbers for each input."""
    random = np.random.default_rng(0)
    return {tensor.name: random.standard_normal(tensor.shape).astype(F32) for tensor in network.inputs}
