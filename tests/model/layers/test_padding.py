"""Padding and reversed sequences. The expected numbers are computed by hand, or by ``np.pad`` and slices."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import netloop
from netloop.model.layers.padding import IPaddingLayer, IReverseSequenceLayer
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import LayerError
from netloop.values.enums import DataType, ReduceOperation, SampleMode
from netloop.values.types import TensorType
from tests.support.examples import examples
from tests.support.laws import Case, check_laws, refuses


def pad(pre, post):
    return IPaddingLayer(pre_padding_nd=pre, post_padding_nd=post)


def reverse(batch=1, sequence=0):
    return IReverseSequenceLayer(batch_axis=batch, sequence_axis=sequence)


def i32(*numbers):
    return np.array(numbers, np.int32)


X = np.arange(1, 7, dtype=np.float32).reshape(1, 1, 2, 3)
TABLE = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], np.float32)
CUBE = np.arange(12, dtype=np.float32).reshape(2, 3, 2)

CASES = [
    Case("zeros all around", pad((1, 1), (1, 1)), (X,), np.pad(X, [(0, 0), (0, 0), (1, 1), (1, 1)])),
    Case("one side", pad((0, 2), (1, 0)), (X,), np.float32([[[[0, 0, 1, 2, 3], [0, 0, 4, 5, 6], [0] * 5]]])),
    Case("nothing", pad((0, 0), (0, 0)), (X,), X),
    Case("cut off", pad((-1, 0), (0, -1)), (X,), X[:, :, 1:, :-1]),
    Case("cut off before, zeros after", pad((0, -1), (0, 2)), (X,), np.float32([[[[2, 3, 0, 0], [5, 6, 0, 0]]]])),
    Case(
        "cut off more than there is before, zeros after", pad((0, -4), (0, 2)), (X,), np.zeros((1, 1, 2, 1), np.float32)
    ),
    Case("all cut off", pad((-1, 0), (-1, 0)), (X,), X[:, :, :0]),
    Case("zeros around no elements", pad((1, 0), (0, 0)), (X[:, :, :0],), np.zeros((1, 1, 1, 3), np.float32)),
    Case("empty batch", pad((1, 0), (0, 0)), (X[:0],), np.zeros((0, 1, 3, 3), np.float32)),
    Case("five axes", pad((0, 1), (0, 0)), (X[None],), np.pad(X[None], [(0, 0)] * 4 + [(1, 0)])),
    *(
        Case(
            f"{np.dtype(dtype)}", pad((0, 1), (0, -1)), (X.astype(dtype),), np.array([[[[0, 1, 2], [0, 4, 5]]]], dtype)
        )
        for dtype in (np.float16, jnp.bfloat16, np.float64, np.int8, np.uint8, np.int32, np.int64)
    ),
    Case("bool", pad((0, 1), (0, 0)), (X > 3,), np.pad(X > 3, [(0, 0)] * 3 + [(1, 0)])),
    Case("each its own length", reverse(), (TABLE, i32(3, 2, 1)), np.float32([[7, 5, 3], [4, 2, 6], [1, 8, 9]])),
    Case("rows as sequences", reverse(0, 1), (TABLE, i32(3, 2, 0)), np.float32([[3, 2, 1], [5, 4, 6], [7, 8, 9]])),
    Case("int64 lengths", reverse(), (TABLE, np.int64([0, 0, 3])), np.float32([[1, 2, 9], [4, 5, 6], [7, 8, 3]])),
    Case("negative axes", reverse(-2, -1), (TABLE, i32(3, 1, 1)), np.float32([[3, 2, 1], [4, 5, 6], [7, 8, 9]])),
    Case("an axis between", reverse(2, 0), (CUBE, i32(2, 1)), np.stack([CUBE[::-1, :, 0], CUBE[:, :, 1]], -1)),
    Case("an axis after", reverse(0, 1), (CUBE, i32(2, 3)), np.stack([CUBE[0, [1, 0, 2]], CUBE[1, ::-1]])),
    Case("no sequences", reverse(), (TABLE[:, :0].copy(), i32()), TABLE[:, :0]),
    Case("sequences of nothing", reverse(), (TABLE[:0], i32(0, 0, 0)), TABLE[:0]),
    *(
        Case(
            f"{np.dtype(dtype)}",
            reverse(0, 1),
            (np.array([[1, 0, 1, 1]], dtype), i32(2)),
            np.array([[0, 1, 1, 1]], dtype),
        )
        for dtype in (np.float16, jnp.bfloat16, np.float64, np.int8, np.uint8, np.int32, np.int64, np.bool_)
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_laws(case):
    check_laws(case)


@examples(15)
@given(st.data())
def test_reversing_twice_is_the_input(data):
    lengths = i32(*data.draw(st.lists(st.integers(0, 3), min_size=3, max_size=3)))
    layer = reverse()

    np.testing.assert_array_equal(layer.evaluate(layer.evaluate(TABLE, lengths), lengths), TABLE)


def test_evaluating_leaves_the_input_alone():
    x = TABLE.copy()
    reverse().evaluate(x, i32(3, 3, 3))

    np.testing.assert_array_equal(x, TABLE)


@pytest.mark.parametrize("length", [-1, 4])
def test_length_that_no_sequence_has_is_refused(length):
    with pytest.raises(LayerError, match=f"sequence 1 has length {length}, and the axis only 3 elements"):
        reverse().evaluate(TABLE, i32(1, length, 1))


def test_gradient_of_padding_is_the_part_that_is_kept():
    seed = np.float32([[[[1, 2, 3], [4, 5, 6]]]])
    found = jax.grad(lambda x: (pad((0, 1), (0, -1)).lower(x) * seed).sum())(jnp.asarray(X))

    np.testing.assert_array_equal(found, [[[[2, 3, 0], [5, 6, 0]]]])


def test_gradient_of_reversing_is_reversed():
    found = jax.grad(lambda x: (reverse().lower(x, i32(3, 2, 1)) * TABLE).sum())(jnp.asarray(TABLE))

    np.testing.assert_array_equal(found, [[7, 5, 3], [4, 2, 6], [1, 8, 9]])


def f32(*shape):
    return TensorType(np.dtype(np.float32), shape)


def lengths(*shape):
    return TensorType(np.dtype(np.int32), shape)


def test_padding_of_unknown_length_is_unknown():
    assert pad((1, 1), (0, -9)).infer(f32(-1, 2, 3, -1)).shape == (-1, 2, 4, -1)


def test_reversing_keeps_unknown_lengths():
    assert reverse().infer(f32(-1, -1), lengths(4)).shape == (-1, -1)


def test_padding_of_three_axes_is_refused():
    refuses(pad((1, 1), (1, 1)), X[0], match="the input float32[1,2,3] has 3 axes, but must have at least 4")


@pytest.mark.parametrize("name", ["pre_padding_nd", "post_padding_nd"])
def test_padding_of_another_number_of_axes_is_refused(name):
    layer = pad((1, 1), (1, 1))
    setattr(layer, name, (1, 1, 1))

    refuses(layer, X, match=f"{name} is (1, 1, 1), but must have 2 numbers")


def test_cutting_off_more_than_there_is_is_refused():
    refuses(
        pad((0, -2), (0, -2)), X, match="axis 3 of the input float32[1,1,2,3] has 3 elements, and the padding crops 4"
    )


def test_sequences_along_the_axis_of_the_batch_are_refused():
    refuses(reverse(1, -1), TABLE, i32(1, 1, 1), match="batch_axis and sequence_axis are both axis 1")


def test_axis_that_is_not_there_is_refused():
    refuses(reverse(2, 0), TABLE, i32(1, 1, 1), match="batch_axis 2 is not one of the 2 axes")


def test_lengths_of_floats_are_refused():
    refuses(reverse(), TABLE, f32(3), match="the lengths of the sequences are float32[3], but must be 1-D")


def test_lengths_of_two_axes_are_refused():
    refuses(reverse(), TABLE, lengths(3, 1), match="the lengths of the sequences are int32[3,1], but must be 1-D")


def test_lengths_of_another_number_are_refused():
    refuses(reverse(), TABLE, lengths(2), match="there are 2 lengths for 3 sequences along axis 1 of float32[3,3]")


def test_network_pads():
    network = INetworkDefinition()
    x = network.add_input("x", DataType.FLOAT, (1, 1, 2, 3))
    made = network.add_padding_nd(x, (1, 0), (0, 2))
    assert made.get_output(0).shape == (1, 1, 3, 5)
    made.post_padding_nd = (0, -1)

    assert made.get_output(0).shape == (1, 1, 3, 2)


def test_network_reverses_along_axis_0_by_default():
    network = INetworkDefinition()
    x = network.add_input("x", DataType.FLOAT, (4, 3, 2))
    made = network.add_reverse_sequence(x, network.add_constant((3,), i32(1, 2, 3)).get_output(0))
    assert made.get_output(0).shape == (4, 3, 2)

    assert (made.batch_axis, made.sequence_axis) == (1, 0)
    assert made.name == "(Unnamed Layer* 1) [ReverseSequence]"


def test_input_whose_padding_is_cropped_again_cannot_be_larger_than_any_tensor():
    """XLA pads before it crops, and ends the process where sizes overflow."""
    match = "the input with its padding, before it is cropped, is float32[1,1,2147483650,2147483650]"

    refuses(pad((2**31, 2**31), (-(2**31), -(2**31))), f32(1, 1, 2, 2), match=match)


@pytest.mark.parametrize("pad", ["slice", "padding"])
def test_sum_of_few_numbers_and_many_zeros_is_not_computed_by_the_compiler(network, pad):
    numbers, size = network.add_constant((1, 1, 1, 3), np.int32([[[[1, 2, 3]]]])).get_output(0), 1 << 30
    if pad == "slice":
        padded = network.add_slice(numbers, (0,) * 4, (1, 1, 1, size), (1,) * 4)
        padded.mode = SampleMode.FILL
    else:
        padded = network.add_padding_nd(numbers, (0, 0), (0, size - 3))
    total = network.add_reduce(padded.get_output(0), ReduceOperation.SUM, 0b1111, False).get_output(0)
    choice = network.add_if_conditional()
    choice.set_condition(network.add_input("flag", DataType.BOOL, ()))
    network.mark_output(choice.add_output(total, network.add_constant((), np.int32(7)).get_output(0)).get_output(0))
    started = time.perf_counter()

    (found,) = netloop.compile(network)({"flag": np.bool_(False)}).values()
    assert found == 7
    assert time.perf_counter() - started < 20
