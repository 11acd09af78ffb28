"""Whole networks in onnxruntime."""

import numpy as np
import pytest
from hypothesis import given

import netloop as trt
from netloop.tools.demo import char_rnn
from tests.compiler.execution.test_differential import assert_equal
from tests.support.examples import examples, same_examples
from tests.support.networks import EXAMPLES, assert_outputs
from tests.support.onnx_exportable import Exportable
from tests.support.onnx_runtime import export, run
from tests.support.strategies import Grown, networks


def agree(grown: Grown) -> None:
    """Check that the exported model agrees with the reference, and that its assertions hold."""
    meant = trt.evaluate(grown.network, grown.inputs)

    assert_equal(run(export(grown.network, drop_assertions=True), grown.inputs), meant, grown.rough)


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_every_example_gives_what_was_worked_out_by_hand(example):
    model = export(example.make(), drop_assertions=True)

    assert_outputs(run(model, example.inputs), example.outputs)


@pytest.mark.parametrize("opset", [21, 22, 23, 24, 25, 26])
def test_every_opset_gives_the_same(opset):
    example = EXAMPLES["conditional in a loop"]
    model = export(example.make(), opset=opset)

    assert model.opset_import[0].version == opset
    assert_outputs(run(model, example.inputs), example.outputs)


def test_language_model_generates_the_same_text():
    model = char_rnn.load()
    inputs = {"seed": char_rnn.encode("ROMEO"), "count": np.int32(12)}
    network = char_rnn.generating_network(model)

    np.testing.assert_array_equal(run(export(network), inputs)["generated"], trt.compile(network)(inputs)["generated"])


@same_examples(30, nightly=600)
@given(networks(depth=2, most=30, grower=Exportable))
def test_random_network_gives_what_the_reference_means(grown):
    agree(grown)


@pytest.mark.slow
@examples(100)
@given(networks(depth=4, most=60, grower=Exportable))
def test_random_network_gives_what_the_reference_means_at_length(grown):
    agree(grown)
