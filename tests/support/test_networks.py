"""The shared networks compute their documented outputs in every way to run them."""

import pytest

import netloop as trt
from tests.support.networks import EXAMPLES, WAYS, assert_outputs, run

each_example = pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)


@pytest.mark.parametrize("way", WAYS)
@each_example
def test_every_example_gives_what_was_worked_out_by_hand(example, way):
    assert_outputs(run(way, example.make(), example.inputs), example.outputs)


@each_example
def test_copy_means_the_same(example):
    assert_outputs(trt.evaluate(example.make().copy(), example.inputs), example.outputs)
