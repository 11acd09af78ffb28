"""Networks keep their meaning when they are exported to OpenVINO and imported again."""

import pytest

import netloop as trt
import netloop.openvino
from tests.compiler.execution.test_differential import assert_equal
from tests.support.examples import many, mostly_slow
from tests.support.networks import EXAMPLES, assert_outputs
from tests.support.openvino_exportable import grown
from tests.support.openvino_runtime import export


def agree(seed):
    made = grown(seed)
    network = netloop.openvino.load(*export(made.network, drop_assertions=True))

    assert_equal(trt.evaluate(network, made.inputs), trt.evaluate(made.network, made.inputs), made.rough)


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_every_example_comes_back(example):
    network = netloop.openvino.load(*export(example.make(), drop_assertions=True))

    assert_outputs(trt.evaluate(network, example.inputs), example.outputs)


def test_network_comes_back_from_its_files(tmp_path):
    example = EXAMPLES["conditional in a loop"]
    netloop.openvino.save(example.make(), tmp_path / "model.xml")
    network = netloop.openvino.load(tmp_path / "model.xml")

    assert_outputs(trt.compile(network)(example.inputs), example.outputs)


@pytest.mark.parametrize("seed", mostly_slow(10, range(20)))
def test_random_network_comes_back(seed):
    agree(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", many(30, 20))
def test_random_network_comes_back_at_length(seed):
    agree(seed)
