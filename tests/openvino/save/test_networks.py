"""Whole networks in OpenVINO, and loaded again."""

from random import Random

import numpy as np
import pytest

import netloop as trt
import netloop.openvino
from netloop.demo import char_rnn
from tests.networks import EXAMPLES, assert_outputs
from tests.openvino.save.exportable import Expressible
from tests.openvino.save.runtime import export, run
from tests.test_differential import assert_equal

NOT_IN_OPENVINO = {"loop in a conditional": "OpenVINO's CPU plugin computes int64 in 32 bits"}
IN_OPENVINO = {name: each for name, each in EXAMPLES.items() if name not in NOT_IN_OPENVINO}

SEEDS = {
    "quick": range(20),
    "long": range(20, 320),
}


def grown(seed):
    chance = Random(seed)
    return Expressible(chance, chance.randint(1, 3), chance.randint(0, 40)).grow()


def agree(seed):
    """OpenVINO gives what the reference means, and so does what is loaded again."""
    made = grown(seed)
    meant = trt.evaluate(made.network, made.inputs)
    model = export(made.network, drop_assertions=True)

    assert_equal(run(model, made.inputs), meant, made.rough)
    assert_equal(trt.evaluate(netloop.openvino.load(*model), made.inputs), meant, made.rough)


@pytest.mark.parametrize("example", IN_OPENVINO.values(), ids=IN_OPENVINO)
def test_every_example_gives_what_was_worked_out_by_hand(example):
    assert_outputs(run(export(example.make(), drop_assertions=True), example.inputs), example.outputs)


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_every_example_comes_back(example):
    network = netloop.openvino.load(*export(example.make(), drop_assertions=True))

    assert_outputs(trt.evaluate(network, example.inputs), example.outputs)


def test_language_model_generates_the_same_text():
    model = char_rnn.load()
    inputs = {"seed": char_rnn.encode("ROMEO"), "count": np.int32(12)}
    network = char_rnn.generating_network(model)

    np.testing.assert_array_equal(run(export(network), inputs)["generated"], trt.compile(network)(inputs)["generated"])


@pytest.mark.parametrize("seed", range(20))
def test_random_network_gives_what_the_reference_means(seed):
    agree(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20, 320))
def test_random_network_gives_what_the_reference_means_at_length(seed):
    agree(seed)
