"""Reductions in OpenVINO, behind a transpose and before arithmetic with constants."""

import itertools
from functools import partial

import numpy as np
import pytest

import netloop as trt
from tests.support.networks import Op, cast, combine, mark
from tests.support.openvino_runtime import export, run

SHAPES = [(4, 2, 3), *(pytest.param(shape, marks=pytest.mark.slow) for shape in ((2, 9, 8), (3, 5, 7, 2)))]


def reduced(network, x, op, axes, keeps=False):
    """``x`` reduced along axes."""
    return network.add_reduce(x, op, sum(1 << axis for axis in axes), keeps).get_output(0)


def turned_by(network, x, order):
    """``x`` with its axes in another order."""
    shuffle = network.add_shuffle(x)
    shuffle.first_transpose = order
    return shuffle.get_output(0)


def check(array, makers):
    """Check that OpenVINO gives what the reference gives, for a function of an input of its own for each output."""
    network = trt.INetworkDefinition()
    inputs = {f"x{place}": array for place in range(len(makers))}
    mark(network, **{f"y{place}": make(network, f"x{place}", array.shape) for place, make in enumerate(makers)})

    outputs = run(export(network), inputs)
    for name, meant in trt.evaluate(network, inputs).items():
        np.testing.assert_array_equal(outputs[name], meant, name, strict=True)


@pytest.mark.parametrize("following", [Op.SUM, Op.PROD])
@pytest.mark.parametrize("op", [trt.ReduceOperation.SUM, trt.ReduceOperation.MAX, trt.ReduceOperation.PROD])
@pytest.mark.parametrize("shape", SHAPES)
def test_arithmetic_with_constants_on_reduced_integers(shape, op, following):
    # OpenVINO's fault is not in models of several reductions
    for count in range(1, len(shape)):
        for axes in itertools.combinations(range(len(shape)), count):
            keeps = count == 1
            check(np.resize(np.array([1, 2, -1], np.int32), shape), [partial(followed, op, axes, keeps, following)])


def followed(op, axes, keeps, following, network, name, shape):
    """A reduction of an input, and arithmetic with a constant."""
    x = network.add_input(name, trt.int32, (-1,) * len(shape))
    return combine(network, reduced(network, x, op, axes, keeps), 2, following)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("shape", [(1, -1, -1), (1, 2, 3)])
@pytest.mark.parametrize("is_cast", [False, True])
def test_reduction_of_a_transposed_tensor_with_an_axis_of_one_element(is_cast, shape, order):
    def reduced_after_a_transpose(axis, network, name, _):
        turned = turned_by(network, network.add_input(name, trt.int32, shape), order)
        turned = cast(network, turned, trt.float32) if is_cast else turned
        return reduced(network, turned, trt.ReduceOperation.SUM, [axis])

    array = np.arange(6, dtype=np.int32).reshape(1, 2, 3)
    check(array, [partial(reduced_after_a_transpose, axis) for axis in range(3)])


def test_other_reductions_are_written_as_they_are():
    network = trt.INetworkDefinition()
    x, n = network.add_input("x", trt.float32, (4, 2, 3)), network.add_input("n", trt.int32, (4, 2))
    turned = reduced(network, turned_by(network, x, (1, 2, 0)), trt.ReduceOperation.SUM, [0])
    mark(network, turned=turned, total=reduced(network, n, trt.ReduceOperation.SUM, [0]))

    assert b"Squeeze" not in export(network)[0]
    assert b"Maximum" not in export(network)[0]
