"""Rules about wiring, each with the smallest network that breaks it."""

import numpy as np
import pytest

import netloop as trt
from netloop.model.layers.pointwise import ISelectLayer
from tests.support.findings import line_of, only
from tests.support.networks import F, Op, combine, constant, mark


@pytest.fixture
def x(network):
    return network.add_input("x", trt.float32, (2,))


def test_missing_input(network, x):
    layer = ISelectLayer()
    layer.attach(network.types, 0, [x, None, x])
    network.layers.append(layer)
    mark(network, y=layer.get_output(0))

    found = only(network, "NL101", layer)
    assert found.what == "input 1 of '(Unnamed Layer* 0) [Select]' is missing"
    assert found.fix == "call set_input(1, tensor) on the layer"


def test_layers_that_feed_each_other(network, x):
    a = network.add_elementwise(x, x, Op.SUM)
    b = network.add_elementwise(a.get_output(0), x, Op.SUM)
    a.set_input(1, b.get_output(0))
    a.name, b.name = "a", "b"
    mark(network, y=b.get_output(0))

    found = only(network, "NL102")
    assert "'a'" in found.what
    assert "'b'" in found.what
    assert found.fix == "carry the value through ILoop.add_recurrence"


def test_tensor_of_another_network(network, x):
    other = trt.INetworkDefinition()
    with pytest.raises(trt.NetworkError, match="NL103: tensor 'x' belongs to another network"):
        other.add_identity(x)
    with pytest.raises(trt.NetworkError, match="NL103: tensor 'x' belongs to another network") as caught:
        other.mark_output(x)

    assert caught.value.findings[0].where == line_of(__file__, "other.mark_output(x)")


def test_two_inputs_of_one_name(network, x):
    with pytest.raises(trt.NetworkError, match="NL104: the network already has an input 'x'"):
        network.add_input("x", trt.float32, ())


def test_network_without_an_output(network, x):
    found = only(network, "NL105", network)

    assert found.what == "the network has no output"
    assert found.fix == "mark one with network.mark_output(tensor)"


@pytest.mark.parametrize("name", ["x", "y"])
def test_output_of_a_name_that_is_taken(network, x, name):
    mark(network, y=combine(network, x, 1))
    second = network.add_identity(x)
    second.get_output(0).name = name
    network.mark_output(second.get_output(0))

    found = only(network, "NL106", second)
    assert found.what == f"two inputs or outputs of the network are named {name!r}"
    assert line_of(__file__, "second = network.add_identity(x)") in found.where


def test_input_that_is_an_output_too_has_one_name(network, x):
    network.mark_output(x)

    only(network, "NL108", x)  # and nothing about a name that two have


def test_element_types_that_do_not_fit(network, x):
    layer = network.add_elementwise(x, constant(network, [1, 2], np.int32), Op.SUM)
    layer.name = "the sum"
    after = combine(network, layer.get_output(0), constant(network, [1, 2], F))
    mark(network, y=after)

    found = only(network, "NL401", layer)
    assert found.where.endswith("IElementWiseLayer 'the sum'")
    assert line_of(__file__, "layer = network.add_elementwise(x, constant") in found.where
