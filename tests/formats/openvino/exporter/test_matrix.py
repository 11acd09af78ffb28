"""Products of matrices in OpenVINO."""

import numpy as np
import pytest

import netloop as trt
from tests.support.networks import Op, combine, constant, mark
from tests.support.openvino_runtime import export, run

NONE = trt.MatrixOperation.NONE


@pytest.mark.parametrize("kind", [trt.ActivationType.CLIP, trt.ActivationType.RELU])
@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("terms", [1, 2, 3])
@pytest.mark.parametrize("is_open", [False, True])
def test_factors_of_columns_behind_an_activation_of_a_product_are_kept(kind, batch, terms, is_open):
    network = trt.INetworkDefinition()
    rows, columns = (*batch, 2, terms), (*batch, terms, 2)
    open_rows = (*batch, 2, -1 if is_open else terms)
    a, b = network.add_input("a", trt.float32, open_rows), network.add_input("b", trt.float32, columns)
    layer = network.add_activation(network.add_matrix_multiply(a, NONE, b, NONE).get_output(0), kind)
    if kind is trt.ActivationType.CLIP:
        layer.alpha, layer.beta = -1, 1
    factors = constant(network, np.float32([-2, 3]).reshape(*[1] * len(batch), 1, 2))
    mark(network, y=combine(network, layer.get_output(0), factors, Op.PROD))
    inputs = {"a": np.resize(np.float32([0.5, -1]), rows), "b": np.resize(np.float32([1, 2, -0.25]), columns)}

    np.testing.assert_allclose(run(export(network), inputs)["y"], trt.evaluate(network, inputs)["y"])
