"""Networks that tests write for other runtimes, with inputs and the outputs that the engine gives."""

import numpy as np

import netloop as trt
from tests.support import networks

Example = tuple[trt.INetworkDefinition, dict[str, np.ndarray], dict[str, np.ndarray]]


def generator() -> Example:
    """A loop that ends by its own numbers, with stacked rows and a product in it."""
    network = trt.INetworkDefinition()
    start = network.add_input("start", trt.float32, (2, 3))
    weights = np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32)
    loop = networks.counted(network, 8)
    state = loop.add_recurrence(start)
    h = state.get_output(0)
    product = network.add_matrix_multiply(
        h, trt.MatrixOperation.NONE, networks.constant(network, weights), trt.MatrixOperation.NONE
    )
    after = network.add_activation(product.get_output(0), trt.ActivationType.TANH).get_output(0)
    state.set_input(1, after)
    networks.mark(
        network, last=networks.last(loop, h), rows=networks.stacked(loop, after, networks.constant(network, 8))
    )
    inputs = {"start": np.random.default_rng(1).normal(size=(2, 3)).astype(np.float32)}
    return network, inputs, {name: np.asarray(value) for name, value in trt.compile(network)(inputs).items()}


def ended_by_a_condition() -> Example:
    """A loop with a WHILE limit."""
    made, inputs, outputs = networks.EXAMPLES["both limits, WHILE first"]
    return made(), {name: np.asarray(tensor) for name, tensor in inputs.items()}, outputs


def of_doubles() -> Example:
    """A number that float32 has not, so that doubles must stay doubles."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float64, (2,))
    networks.mark(network, y=network.add_unary(x, trt.UnaryOperation.NEG).get_output(0))
    inputs = {"x": np.float64([1 + 2**-40, 3])}
    return network, inputs, {"y": -inputs["x"]}


EXAMPLES_WITHOUT_DOUBLES = [generator, ended_by_a_condition]
EXAMPLES = [*EXAMPLES_WITHOUT_DOUBLES, of_doubles]


def same(found: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> None:
    """Assert that a runtime gives the outputs of an engine."""
    assert sorted(found) == sorted(wanted)
    for name, array in wanted.items():
        precision = 1e-14 if array.dtype == np.float64 else 1e-5
        np.testing.assert_allclose(found[name], array, rtol=precision, atol=precision / 10)
