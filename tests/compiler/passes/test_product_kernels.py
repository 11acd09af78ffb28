"""Products with weights as machine code: numbers, what one kernel computes, and where it does not apply."""

import numpy as np
import pytest

import netloop as trt
from netloop.compiler.machine_code.processor import processor
from netloop.compiler.passes.convolution_kernels import ConvolutionKernelLayer
from netloop.model.layers.matrix import IMatrixMultiplyLayer
from netloop.model.layers.pointwise import IActivationLayer, IElementWiseLayer
from tests.support import onnx_runtime
from tests.support.convolutions import DTYPES, assert_near, inputs_of, same_as_the_reference
from tests.support.devices import only_on_cpus
from tests.support.networks import constant, counted, mark
from tests.support.pass_checks import count, improved

pytestmark = [
    only_on_cpus("the pass is not used elsewhere"),
    pytest.mark.skipif(processor() is None, reason="the extra is not installed, or there are no kernels"),
]

ONLY = ["product_kernels"]
NONE, TRANSPOSE, VECTOR = trt.MatrixOperation.NONE, trt.MatrixOperation.TRANSPOSE, trt.MatrixOperation.VECTOR


def weights(network, *shape, seed=0, dtype=np.float32):
    return constant(network, np.random.default_rng(seed).standard_normal(shape).astype(dtype), dtype)


def dense(network, x, units, activation=None, seed=0, op=NONE):
    """A dense layer with a bias."""
    ones = [1] * (x.type.rank - 2)
    shape = (x.shape[-1], units) if op is NONE else (units, x.shape[-1])
    product = network.add_matrix_multiply(x, NONE, weights(network, *ones, *shape, seed=seed), op).get_output(0)
    bias = weights(network, *ones, 1, units, seed=seed + 1)
    y = network.add_elementwise(product, bias, trt.ElementWiseOperation.SUM).get_output(0)
    return y if activation is None else network.add_activation(y, activation).get_output(0)


def of(shape, build, dtype=np.float32):
    network = trt.INetworkDefinition()
    x = network.add_input("x", DTYPES[np.dtype(dtype)], shape)
    return mark(network, y=build(network, x))


def agrees(network, passes=ONLY):
    """The copy of a network after passes, which has the numbers of the reference and of onnxruntime."""
    copy, inputs = same_as_the_reference(network, passes), inputs_of(network)
    assert_near(trt.compile(network, passes=passes)(inputs), onnx_runtime.run(onnx_runtime.export(network), inputs))
    return copy


def kernels(network):
    return count(network, ConvolutionKernelLayer)


@pytest.mark.parametrize("op", [NONE, TRANSPOSE])
@pytest.mark.parametrize("shape", [(1, 20), (7, 20), (50, 33), (2, 3, 16), (2, 1, 5, 40)])
def test_products_of_any_rank_and_their_activations(shape, op):
    copy = agrees(of(shape, lambda network, x: dense(network, x, 24, trt.ActivationType.TANH, op=op)))

    assert kernels(copy) == 1
    assert not count(copy, IMatrixMultiplyLayer) + count(copy, IActivationLayer) + count(copy, IElementWiseLayer)


def test_a_perceptron_is_its_kernels():
    def build(network, x):
        hidden = dense(network, x, 48, trt.ActivationType.RELU)
        again = dense(network, hidden, 48, trt.ActivationType.RELU, seed=2)
        joined = network.add_elementwise(hidden, again, trt.ElementWiseOperation.SUM).get_output(0)
        return dense(network, joined, 10, seed=4)

    copy = agrees(of((3, 30), build))

    # the sum is read from memory by the second, which adds it
    assert (kernels(copy), count(copy, IElementWiseLayer)) == (3, 0)


def test_what_a_kernel_and_another_layer_read_is_computed_once():
    def build(network, x):
        product, other = (network.add_matrix_multiply(x, NONE, weights(network, 30, 48, seed=seed), NONE).get_output(0)
                          for seed in (0, 1))  # fmt: skip
        network.mark_output(network.add_activation(other, trt.ActivationType.RELU).get_output(0))
        return network.add_elementwise(product, other, trt.ElementWiseOperation.SUM).get_output(0)

    copy = agrees(of((3, 30), build))

    assert (kernels(copy), count(copy, IMatrixMultiplyLayer)) == (2, 0)


def test_all_passes_together_keep_the_meaning():
    network = of((3, 30), lambda network, x: dense(network, dense(network, x, 48, trt.ActivationType.RELU), 10))

    assert kernels(same_as_the_reference(network, sorted(trt.PASSES))) == 2


def test_others_stay_with_xla():
    def uses(shape, matrix, op0=NONE, op1=NONE, dtype=np.float32):
        def build(network, x):
            return network.add_matrix_multiply(x, op0, weights(network, *matrix, dtype=dtype), op1).get_output(0)

        return kernels(improved(of(shape, build, dtype), ONLY).network) == 1

    assert uses((4, 16), (16, 8))
    assert uses((4, 16), (8, 16), NONE, TRANSPOSE)
    assert uses((2, 4, 16), (1, 16, 8))
    assert not uses((16, 4), (16, 8), TRANSPOSE)
    assert not uses((16,), (16, 32), VECTOR)
    assert not uses((16, 32), (32,), NONE, VECTOR)
    # a matrix for each batch
    assert not uses((2, 4, 16), (2, 16, 8))
    assert not uses((4, 16), (16, 8), dtype=np.float16)
    assert not uses((4, 16), (16, 8), dtype=np.float64)
    assert not uses((-1, 16), (16, 8))
    assert not uses((0, 16), (16, 8))
    # as few multiplications as XLA computes at once
    assert not uses((1, 16), (16, 8))


def test_networks_of_large_products_stay_with_xla(monkeypatch):
    network = of((4, 16), lambda network, x: dense(network, dense(network, x, 24), 8))
    work = 4 * 16 * 24 + 4 * 24 * 8

    monkeypatch.setattr("netloop.compiler.passes.product_kernels.MOST_WORK", work)
    assert kernels(improved(network, ONLY).network) == 2
    monkeypatch.setattr("netloop.compiler.passes.product_kernels.MOST_WORK", work - 1)
    assert not kernels(improved(network, ONLY).network)


def test_products_of_two_inputs_stay_with_xla():
    network = trt.INetworkDefinition()
    x, y = (network.add_input(name, trt.float32, (16, 16)) for name in "xy")
    network = mark(network, z=network.add_matrix_multiply(x, NONE, y, NONE).get_output(0))

    assert improved(network, ONLY).network is network


def test_loops_keep_their_products():
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (4, 24))
    loop = counted(network, 3)
    state = loop.add_recurrence(x)
    state.set_input(1, dense(network, state.get_output(0), 24, trt.ActivationType.TANH))
    last = loop.add_loop_output(state.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0)

    assert improved(mark(network, y=last), ONLY).network is network


def test_weights_that_are_refitted_are_those_of_the_next_call():
    network = of((4, 16), lambda network, x: dense(network, x, 24))
    for layer in network:
        if isinstance(layer, IMatrixMultiplyLayer):
            layer.get_input(1).producer.name = "matrix"
    engine, inputs = trt.compile(network, passes=ONLY), inputs_of(network)
    before = np.asarray(engine(inputs)["y"])

    refitter = trt.Refitter(engine, trt.Logger())
    assert refitter.set_weights("matrix", trt.WeightsRole.CONSTANT, np.zeros((16, 24), np.float32))
    assert refitter.refit_cuda_engine()

    bias = np.random.default_rng(1).standard_normal((1, 24)).astype(np.float32)
    np.testing.assert_allclose(engine(inputs)["y"], np.broadcast_to(bias, before.shape), atol=1e-6)
