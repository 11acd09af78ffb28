"""Weights are flat arrays, from an array or an address."""

import numpy as np
import pytest

from netloop import InputError
from netloop.model.weights import Weights, read_again, weights_array
from netloop.values.enums import DataType
from tests.support.memory import Pages


def test_weights_keep_an_array_without_a_copy():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)

    assert np.shares_memory(Weights(array).numpy(), array)


def test_weights_are_flat():
    np.testing.assert_array_equal(Weights(a=np.array([[1, 2], [3, 4]])).numpy(), [1, 2, 3, 4])


def test_weights_know_their_size():
    weights = Weights(np.zeros((2, 3), np.float16))

    assert (weights.dtype, weights.size, len(weights), weights.nbytes) == (DataType.HALF, 6, 6, 12)


def test_weights_without_an_array_are_empty():
    assert (Weights().dtype, Weights().size, Weights(DataType.INT8).dtype) == (DataType.FLOAT, 0, DataType.INT8)


def test_weights_are_read_from_an_address():
    array = np.array([1, 2, 3], np.int32)
    weights = Weights(DataType.INT32, array.ctypes.data, 2)
    array[0] = 7

    np.testing.assert_array_equal(weights.numpy(), [7, 2])


@pytest.mark.parametrize(
    ("type", "packed", "count", "elements"),
    [
        (DataType.INT4, [0x8F, 0x71, 0x03], 5, [-1, -8, 1, 7, 3]),
        (DataType.UINT4, [0x8F, 0x71], 4, [15, 8, 1, 7]),
        (DataType.INT2, [0b11_10_01_00, 0b11], 5, [0, 1, -2, -1, -1]),
        (DataType.UINT2, [0b11_10_01_00], 4, [0, 1, 2, 3]),
        (DataType.FP4, [0x21, 0xF7], 4, [0.5, 1, 6, -6]),
    ],
)
def test_weights_narrower_than_a_byte_are_packed_at_an_address(type, packed, count, elements):
    array = np.array(packed, np.uint8)
    weights = Weights(type, array.ctypes.data, count)

    assert (weights.dtype, weights.numpy().astype(float).tolist()) == (type, elements)


def test_array_of_weights_is_taken_as_it_is():
    array = np.zeros(3, np.int8)

    assert weights_array(Weights(array)).base is array or weights_array(Weights(array)) is array
    assert weights_array(array) is array


def test_scalar_is_an_array_of_weights():
    assert weights_array(np.float32(3)).shape == ()


@pytest.mark.parametrize("given", [3, 3.5, None, "DataType.FLOAT"])
def test_weights_begin_with_an_array_or_a_type(given):
    with pytest.raises(TypeError, match="weights must be an array, or a DataType"):
        Weights(given)


def test_weights_of_an_array_take_nothing_else():
    with pytest.raises(TypeError, match="takes no other arguments"):
        Weights(np.zeros(3), 3)


def test_list_is_no_array_of_weights():
    with pytest.raises(TypeError, match="weights must be a numpy array or Weights, not list"):
        weights_array([1, 2])


def test_array_with_gaps_is_no_array_of_weights():
    with pytest.raises(ValueError, match="weights must be C-contiguous"):
        weights_array(np.zeros((2, 2))[:, 0])


@pytest.mark.parametrize("dtype", [np.complex64, np.dtype("S3")])
def test_weights_have_a_type_that_tensors_have(dtype):
    with pytest.raises(ValueError, match="no tensor has the element type"):
        weights_array(np.zeros(2, dtype))


@pytest.mark.parametrize("address", [8, 2**47, 2**64 - 8, -8, 2**64 + 8])
def test_address_of_weights_without_memory_is_an_error(address):
    with pytest.raises(InputError, match="NL629: the address of weights is wrong"):
        Weights(DataType.FLOAT, address, 3)


def test_weights_that_are_read_again_need_their_memory_still():
    with Pages() as pages:
        weights = Weights(DataType.FLOAT, pages.writable, 3)
        pages.forbid()

        with pytest.raises(InputError, match="NL629"):
            read_again(weights)
