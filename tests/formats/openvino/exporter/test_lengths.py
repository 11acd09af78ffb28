"""Lengths in OpenVINO that are computed from the lengths of reversed tensors, in several calls."""

import numpy as np

import netloop as trt
from tests.support.networks import REVERSE, Op, combine, constant, counted, mark, stacked
from tests.support.openvino_runtime import export, run_calls


def length(network, tensor, axis):
    """The length of an axis, int64, 0-D."""
    shape = network.add_shape(tensor).get_output(0)
    return network.add_gather(shape, constant(network, axis, np.int64), 0).get_output(0)


def check(network):
    calls = [{"x": np.arange(2 * count, dtype=np.float32).reshape(count, 2)} for count in (3, 1, 0, 5)]
    for inputs, outputs in zip(calls, run_calls(export(network), calls), strict=True):
        for name, meant in trt.evaluate(network, inputs).items():
            np.testing.assert_array_equal(outputs[name], meant, strict=True)


def test_product_of_the_length_of_reversed_rows():
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (-1, 2))
    rows = length(network, x, 0)
    turned = stacked(counted(network, rows), constant(network, np.float32([1, 2])), rows, REVERSE)

    layer = network.add_shuffle(combine(network, length(network, turned, 0), 2, Op.PROD))
    layer.reshape_dims = (1,)
    ones = network.add_fill((1,), trt.FillOperation.LINSPACE, trt.int32)
    for place, number in enumerate(
        (layer.get_output(0), constant(network, np.int32(1)), constant(network, np.int32([0])))
    ):
        ones.set_input(place, number)

    check(mark(network, y=ones.get_output(0)))
