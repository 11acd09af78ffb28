"""The types of a call follow from those for other lengths that share its program."""

import numpy as np
import pytest

import netloop as trt
from netloop.compiler.execution.bucket_types import BucketTypes
from netloop.compiler.execution.input_lengths import SharedPrograms
from netloop.compiler.passes.growth import Unbuffered
from netloop.model.formulas import FormulaBuilder
from netloop.model.graph import TypeTable
from netloop.values.types import TensorType
from tests.compiler.execution.test_input_lengths import agree, step_inputs, step_of_a_decoder
from tests.support.networks import mark


@pytest.fixture
def inferred(monkeypatch):
    """The input shapes for which types are inferred."""
    shapes, original = [], SharedPrograms._types

    def types(self, own):
        shapes.append(own)
        return original(self, own)

    monkeypatch.setattr(SharedPrograms, "_types", types)
    return shapes


@pytest.fixture
def make(network):
    return FormulaBuilder(network)


def agree_with_reshaped_rows(make, size, lengths):
    """Check sums of rows [n, 2] of which ``size`` makes a number of rows, a 1-D tensor, of their length."""
    network = make.network
    x = network.add_input("x", trt.float32, (-1, 2))
    length = make.list_tensor([make.length(x, 0)])
    engine = trt.compile(mark(network, y=make.slice(x, [0], size(length), axes=[0])))
    for number in lengths:
        agree(engine, network, {"x": np.arange(2 * number, dtype=np.float32).reshape(number, 2)})


def test_three_lengths_of_a_bucket_decide_the_types_of_all(network, inferred):
    engine = trt.compile(step_of_a_decoder(network))
    for length in range(2, 17):
        agree(engine, network, step_inputs(length))
    lengths = [shapes[1][0] for shapes in inferred]

    # the family, and its first sets; then of lengths up to 8, and up to 16
    assert lengths[:4] == [-1, 2, 3, 4]
    assert lengths[4:] == [4, 5, 8, 9, 10, 16]


def test_bucket_whose_lengths_come_in_any_order(network, inferred):
    engine = trt.compile(step_of_a_decoder(network))
    for length in (2, 3, 12, 14, 9, 13, 10, 11, 15, 16):
        agree(engine, network, step_inputs(length))

    assert len(inferred) < 14


def test_size_that_is_another_one_for_a_single_length(make):
    def size(length):
        return make.where(make.equal(length, np.int64(13)), np.int64(1), make.sub(length, np.int64(1)))

    agree_with_reshaped_rows(make, size, (2, 3, 9, 10, 11, 12, 13, 14, 16))


def test_size_that_bends_between_lengths(make):
    def size(length):
        return make.minimum(length, make.sub(np.int64(24), length))

    agree_with_reshaped_rows(make, size, (2, 3, 9, 10, 11, 12, 13, 14, 16))


def test_size_that_is_never_minus_one_needs_no_inference(make, inferred):
    def size(length):
        return make.where(make.equal(length, np.int64(-1)), np.int64(1), make.sub(length, np.int64(1)))

    agree_with_reshaped_rows(make, size, (2, 3, 9, 10, 11, 12, 13, 14, 16))
    lengths = [shapes[0][0] for shapes in inferred]

    assert lengths[4:] == [9, 10, 16]


def types_of_boxes(make):
    """The types of boxes of n + 2, n + 3 and 12 - n numbers that are reshaped to a row of 72 + 60 n numbers.

    The numbers are equal for n = 0, 1, and 6, and for no other.
    """
    network = make.network
    x = network.add_input("x", trt.float32, (-1,))
    n = make.length(x, 0)
    table = make.constant(np.zeros((8, 9, 12), np.float32))
    sizes = make.list_tensor([make.add(n, np.int64(2)), make.add(n, np.int64(3)), make.sub(np.int64(12), n)])
    row = make.list_tensor([make.add(make.mul(n, np.int64(60)), np.int64(72))])
    mark(network, y=make.reshape(make.slice(table, [0, 0, 0], sizes), row))
    return lambda number: TypeTable({x: TensorType(np.dtype(np.float32), (number,))})


def test_reshape_is_asked_whether_it_is_possible(make):
    table = types_of_boxes(make)
    types = BucketTypes([*make.network.layers], [], table, 6)

    assert [number for number in range(-1, 8) if types.has(number)] == [0, 1, 6]


def test_length_for_which_the_network_is_invalid_leaves_no_lines(make):
    table = types_of_boxes(make)
    with pytest.raises(Unbuffered, match="do not fit"):
        BucketTypes([*make.network.layers], [], table, 5)


def test_value_that_may_differ_is_not_common(network, make):
    x = network.add_input("x", trt.float32, (-1,))
    is_five = make.equal(make.length(x, 0), np.int64(5))
    mark(network, y=is_five)
    with pytest.raises(Unbuffered, match="may not be the same for all lengths"):
        BucketTypes([*network.layers], [is_five], lambda n: TypeTable({x: TensorType(x.dtype, (n,))}), 9)
