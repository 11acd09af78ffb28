"""What passes see of a network: nothing of branches that are not possible for the inputs."""

import numpy as np
import pytest

import netloop as trt
from tests.support.networks import constant, mark

pytestmark = pytest.mark.usefixtures("low_thresholds")

WEIGHTS = np.random.default_rng(0).normal(size=(4, 2, 3, 3)).astype(np.float32)
IMAGES = np.random.default_rng(1).normal(size=(2, 2, 6, 6)).astype(np.float32)


def convolved(network, x, weights):
    layer = network.add_convolution_nd(x, len(weights), (3, 3), weights, trt.Weights())
    layer.padding_nd = (1, 1)
    return network.add_activation(layer.get_output(0), trt.ActivationType.RELU).get_output(0)


def single_image(network, x):
    """Layers for one image only, of the kinds that passes look for."""
    image = network.add_squeeze(convolved(network, x, WEIGHTS), constant(network, np.array([0]))).get_output(0)
    square = constant(network, np.full((6, 6), 0.5, np.float32))
    none = trt.MatrixOperation.NONE
    products = network.add_matrix_multiply(image, none, constant(network, np.float32([np.eye(6)] * 4)), none)
    loop = network.add_loop()
    loop.add_trip_limit(constant(network, np.int32(2)), trt.TripLimit.COUNT)
    state = loop.add_recurrence(products.get_output(0))
    gate = network.add_activation(state.get_output(0), trt.ActivationType.SIGMOID).get_output(0)
    batch = network.add_unsqueeze(square, constant(network, np.array([0]))).get_output(0)
    state.set_input(1, network.add_matrix_multiply(gate, none, batch, none).get_output(0))
    last = loop.add_loop_output(state.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0)
    return network.add_unsqueeze(last, constant(network, np.array([0]))).get_output(0)


@pytest.fixture
def branches(network):
    """A network of a branch for one image and one for any number of them, between convolutions."""
    x = convolved(network, network.add_input("x", trt.float32, (-1, 2, 6, 6)), WEIGHTS[:2])
    conditional = network.add_if_conditional()
    conditional.set_condition(network.add_input("single", trt.bool, ()))
    inside = conditional.add_input(x).get_output(0)
    chosen = conditional.add_output(single_image(network, inside), convolved(network, inside, WEIGHTS)).get_output(0)
    mark(network, y=convolved(network, chosen, np.concatenate([WEIGHTS, WEIGHTS], 1)))
    return network


def test_network_with_a_branch_that_is_not_possible_runs_the_other_one(branches):
    inputs = {"x": IMAGES, "single": np.False_}

    assert trt.compile(branches)(inputs)["y"] == pytest.approx(trt.evaluate(branches, inputs)["y"], rel=1e-4, abs=1e-5)


def test_branch_that_is_not_possible_is_an_error_if_it_is_taken(branches):
    with pytest.raises(trt.NetloopError, match="axis 0 has 2 elements, and only axes of length 1 can be removed"):
        trt.compile(branches)({"x": IMAGES, "single": np.True_})


def test_passes_improve_branches_that_are_possible(branches):
    inputs = {"x": IMAGES[:1], "single": np.True_}

    assert trt.compile(branches)(inputs)["y"] == pytest.approx(trt.evaluate(branches, inputs)["y"], rel=1e-4, abs=1e-5)
