"""Saved networks, loaded again, mean what they meant."""

import pytest
from hypothesis import given, settings

import netloop as trt
import netloop.onnx
from tests.networks import EXAMPLES, assert_outputs
from tests.onnx.save.exportable import Loadable
from tests.strategies import Grown, networks
from tests.test_differential import AT_LENGTH, SETTINGS, assert_equal


def back(network: trt.INetworkDefinition) -> trt.INetworkDefinition:
    model = netloop.onnx.to_model(network, drop_assertions=True)
    return netloop.onnx.load(model.SerializeToString())


def agree(grown: Grown) -> None:
    meant = trt.evaluate(grown.network, grown.inputs)

    assert_equal(trt.evaluate(back(grown.network), grown.inputs), meant, grown.rough)


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_every_example_comes_back(example):
    assert_outputs(trt.evaluate(back(example.make()), example.inputs), example.outputs)


def test_network_comes_back_from_its_file(tmp_path):
    example = EXAMPLES["conditional in a loop"]
    netloop.onnx.save(example.make(), tmp_path / "model.onnx", external_above=0)
    network = netloop.onnx.load(tmp_path / "model.onnx")

    assert [each.name for each in network.outputs] == [each.name for each in example.make().outputs]
    assert_outputs(trt.evaluate(network, example.inputs), example.outputs)


def test_network_comes_back_twice():
    example = EXAMPLES["conditional in a loop"]

    assert_outputs(trt.compile(back(back(example.make())))(example.inputs), example.outputs)


@settings(max_examples=100, **SETTINGS)
@given(networks(depth=2, most=30, grower=Loadable))
def test_random_network_comes_back(grown):
    agree(grown)


@pytest.mark.slow
@settings(max_examples=1000, **AT_LENGTH)
@given(networks(depth=4, most=60, grower=Loadable))
def test_random_network_comes_back_at_length(grown):
    agree(grown)
