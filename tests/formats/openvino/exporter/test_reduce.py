"""Reductions in OpenVINO, behind a transpose and before arithmetic with constants."""

import itertools

import numpy as np
import pytest

import netloop as trt
from tests.support.networks import Op, cast, combine, mark
from tests.support.openvino_runtime import export, run

SHAPES = [(4, 2, 3), (2, 9, 8), (3, 5, 7, 2)]


def reduced(network, x, op, axes, keeps=False):
    """``x`` reduced along axes."""
    return network.add_reduce(x, op, sum(1 << axis for axis in axes), keeps).get_output(0)


def turned_by(network, x, order):
    """``x`` with its axes in another order."""
    shuffle = network.add_shuffle(x)
    shuffle.first_transpose = order
    return shuffle.get_output(0)


def check(network, array):
    """Check that OpenVINO gives what the reference gives."""
    outputs = run(export(network), {"x": array})
    for name, meant in trt.evaluate(network, {"x": array}).items():
        np.testing.assert_array_equal(outputs[name], meant, strict=True)


@pytest.mark.parametrize("following", [Op.SUM, Op.PROD])
@pytest.mark.parametrize("op", [trt.ReduceOperation.SUM, trt.ReduceOperation.MAX, trt.ReduceOperation.PROD])
@pytest.mark.parametrize("shape", SHAPES)
def test_arithmetic_with_constants_on_reduced_integers(shape, op, following):
    for count in range(1, len(shape)):
        for axes in itertools.combinations(range(len(shape)), count):
            network = trt.INetworkDefinition()
            x = network.add_input("x", trt.int32, (-1,) * len(shape))
            mark(network, y=combine(network, reduced(network, x, op, axes, count == 1), 2, following))

            check(network, np.resize(np.array([1, 2, -1], np.int32), shape))


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("shape", [(1, -1, -1), (1, 2, 3)])
@pytest.mark.parametrize("is_cast", [False, True])
def test_reduction_of_a_transposed_tensor_with_an_axis_of_one_element(is_cast, shape, order):
    for axis in range(3):
        network = trt.INetworkDefinition()
        turned = turned_by(network, network.add_input("x", trt.int32, shape), order)
        turned = cast(network, turned, trt.float32) if is_cast else turned
        mark(network, y=reduced(network, turned, trt.ReduceOperation.SUM, [axis]))

        check(network, np.arange(6, dtype=np.int32).reshape(1, 2, 3))


def test_other_reductions_are_written_as_they_are():
    network = trt.INetworkDefinition()
    x, n = network.add_input("x", trt.float32, (4, 2, 3)), network.add_input("n", trt.int32, (4, 2))
    turned = reduced(network, turned_by(network, x, (1, 2, 0)), trt.ReduceOperation.SUM, [0])
    mark(network, turned=turned, total=reduced(network, n, trt.ReduceOperation.SUM, [0]))

    assert b"Squeeze" not in export(network)[0]
    assert b"Maximum" not in export(network)[0]
