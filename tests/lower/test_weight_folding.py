"""What is computed once, when a program gets its weights."""

import jax
import numpy as np
import pytest

import netloop as trt
from netloop.lower.weight_folding import SMALLEST, find_early
from netloop.nest import Scopes, nest
from tests.support.networks import combine, constant, mark

LENGTH = SMALLEST // 4


@pytest.fixture
def weights(network):
    return constant(network, np.ones(LENGTH, np.float32))


def early(network):
    return find_early(nest(network, Scopes(network)), network.outputs, network.types)


def repeated(network, tensor, times):
    layer = network.add_slice(tensor, (0,), (times * LENGTH,), (1,))
    layer.mode = trt.SampleMode.WRAP
    return layer.get_output(0)


def test_output_that_follows_from_weights_alone_is_computed_early(network, weights):
    y = network.add_unary(weights, trt.UnaryOperation.NEG).get_output(0)
    mark(network, y=y)

    assert early(network).tensors == [y]


def test_what_the_rest_reads_is_kept_and_what_led_to_it_is_not(network, weights):
    x = network.add_input("x", trt.float32, (LENGTH,))
    once = network.add_unary(weights, trt.UnaryOperation.NEG).get_output(0)
    twice = network.add_unary(once, trt.UnaryOperation.ABS).get_output(0)
    mark(network, y=combine(network, x, twice))

    assert early(network).tensors == [twice]


@pytest.mark.parametrize(("times", "is_early"), [(4, True), (5, False)])
def test_what_grows_to_more_than_four_times_its_size_is_left_to_the_call(network, weights, times, is_early):
    y = repeated(network, weights, times)
    mark(network, y=y)

    assert early(network).tensors == [y] * is_early


def test_what_reads_little_is_left_to_the_call(network):
    y = network.add_unary(constant(network, np.ones(LENGTH - 1, np.float32)), trt.UnaryOperation.NEG).get_output(0)
    mark(network, y=y)

    assert early(network).steps == []


def put_together(network, weights):
    """Two rows of weights, one beside the other, turned."""
    rows = network.add_concatenation([weights, weights])
    shuffled = network.add_shuffle(rows.get_output(0))
    shuffled.reshape_dims = (2, LENGTH)
    shuffled.second_transpose = trt.Permutation([1, 0])
    return shuffled.get_output(0)


@pytest.mark.parametrize("computes", [False, True])
def test_weights_that_only_move_are_moved_by_numpy(network, weights, computes):
    y = put_together(network, weights)
    y = combine(network, y, y) if computes else y
    mark(network, y=y)

    assert early(network).only_moves == (not computes)
    assert trt.compile(network)({})["y"].tolist() == trt.evaluate(network, {})["y"].tolist()


@pytest.mark.parametrize("computes", [False, True])
def test_weights_have_values_also_where_jax_is_tracing(network, weights, computes):
    y = put_together(network, weights)
    mark(network, y=combine(network, y, y) if computes else y)

    assert jax.jit(lambda: trt.compile(network)({})["y"])().tolist() == trt.evaluate(network, {})["y"].tolist()


def test_weights_that_only_move_are_moved_anew_in_a_refit(network, weights):
    weights.producer.name = "rows"
    mark(network, y=put_together(network, weights))
    engine = trt.compile(network)
    refitter = trt.Refitter(engine, trt.Logger(trt.Logger.ERROR))
    refitter.set_named_weights("rows", np.arange(LENGTH, dtype=np.float32))
    refitter.refit_cuda_engine()

    assert engine({})["y"].tolist() == [[each, each] for each in range(LENGTH)]
