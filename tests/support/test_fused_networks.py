"""The random networks of products and reductions have what XLA may get wrong, and wrong numbers in them are seen."""

from collections import Counter
from math import prod

import numpy as np
import pytest

import netloop as trt
from tests.support.fused_networks import TYPES, differences, fused_network, wrong_numbers
from tests.support.number_bounds import Bounds

NUMBER = 150


@pytest.fixture(scope="module")
def networks():
    return [fused_network(number) for number in range(NUMBER)]


def test_same_number_gives_the_same_network():
    a, b = fused_network(7), fused_network(7)

    assert str(a.network) == str(b.network)
    for name, array in a.inputs.items():
        np.testing.assert_array_equal(array, b.inputs[name])


def test_networks_are_valid(networks):
    for fused in networks:
        assert [str(finding) for finding in trt.check(fused.network) if finding.severity is trt.Severity.ERROR] == []


def test_every_construct_is_drawn(networks):
    kinds = Counter(type(layer) for fused in networks for layer in fused.network.layers)
    wanted = [
        trt.IMatrixMultiplyLayer, trt.IConvolutionLayer, trt.IReduceLayer, trt.ISoftMaxLayer, trt.IPoolingLayer,
        trt.IFillLayer, trt.ISliceLayer, trt.IIteratorLayer, trt.IRecurrenceLayer, trt.IConditionLayer, trt.ICastLayer,
    ]  # fmt: skip

    assert min(kinds[kind] for kind in wanted) >= 3, kinds


def test_every_operation_of_a_reduction_and_of_a_fill_is_drawn(networks):
    layers = [layer for fused in networks for layer in fused.network.layers]
    ops = {layer.op for layer in layers if isinstance(layer, trt.IReduceLayer)}
    fills = {layer.operation for layer in layers if isinstance(layer, trt.IFillLayer)}

    assert ops == set(trt.ReduceOperation) - {trt.ReduceOperation.NONE}
    assert fills == set(trt.FillOperation)


def test_most_networks_have_a_tensor_of_4096_elements_in_between(networks):
    large = [
        any(prod(layer.get_output(0).shape) >= 4096 for layer in fused.network.layers if layer.num_outputs)
        for fused in networks
    ]

    assert sum(large) > 0.8 * NUMBER


def test_every_type_is_drawn(networks):
    assert {tensor.dtype for fused in networks for tensor in fused.network.inputs} >= set(TYPES)


@pytest.mark.parametrize(
    "is_special",
    [
        np.isnan,
        np.isinf,
        lambda x: np.abs(x) > 1e38,
        lambda x: np.signbit(x) & (x == 0),
        lambda x: (np.abs(x) < 1e-38) & (x != 0),
    ],
    ids=["nan", "infinite", "largest", "negative zero", "subnormal"],
)
def test_every_kind_of_special_number_is_drawn(networks, is_special):
    firsts = [next(iter(fused.inputs.values())) for fused in networks]

    assert any(is_special(array).any() for array in firsts if array.dtype == np.float32)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1e30, 2.004])
def test_wrong_number_is_reported_with_its_place(wrong):
    meant = np.full((3, 4), 2, np.float32)
    got = meant.copy()
    got[1, 2] = wrong

    assert differences("y", meant, meant, Bounds(2, 0, 1e-4)) == ""
    assert f"[1, 2]: {np.float64(np.float32(wrong)):.9g} instead of 2" in differences(
        "y", got, meant, Bounds(2, 0, 1e-4)
    )


def test_lost_nan_is_reported():
    meant = np.array([1, np.nan], np.float32)

    assert "[1]: 1 instead of nan" in differences("y", np.float32([1, 1]), meant, Bounds(1, 1))


def test_failure_shows_the_listing_of_the_network(monkeypatch):
    fused = fused_network(0)
    meant = {name: np.asarray(value) + 1000 for name, value in trt.evaluate(fused.network, fused.inputs).items()}
    monkeypatch.setattr(trt, "evaluate", lambda network, inputs: meant)

    text = wrong_numbers(fused)

    assert text.startswith("compilation 1 of ")
    assert str(fused.network) in text
