import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netloop.values.diagnostics import LayerError
from netloop.values.enums import DataType
from netloop.values.types import (
    DATA_TYPES,
    LARGEST_KNOWN_VALUE,
    SequenceType,
    TensorType,
    agree,
    axes_of,
    broadcast,
    data_type,
    merge,
    normal_axis,
    nptype,
    numpy_type,
)

F32 = np.dtype(np.float32)
SHAPES = st.lists(st.sampled_from([0, 1, 2, 3]), max_size=4).map(tuple)


@pytest.mark.parametrize("name", DATA_TYPES.values())
def test_every_type_with_arrays_is_found_again(name):
    assert data_type(numpy_type(name)) is name


def test_every_type_has_arrays():
    assert set(DATA_TYPES.values()) == set(DataType)


@pytest.mark.parametrize("name", [dtype for dtype in DATA_TYPES.values() if dtype.itemsize >= 1])
def test_type_is_as_wide_as_its_arrays(name):
    assert name.itemsize == numpy_type(name).itemsize


@pytest.mark.parametrize("name", [DataType.INT4, DataType.FP4])
def test_two_elements_of_four_bits_share_a_byte(name):
    assert 2 * name.itemsize == 1


@pytest.mark.parametrize(
    ("name", "found"), [(DataType.FLOAT, np.float32), (DataType.BOOL, np.bool_), (DataType.INT64, np.int64)]
)
def test_numpy_has_most_types_itself(name, found):
    assert nptype(name) is found


@pytest.mark.parametrize("name", [DataType.BF16, DataType.FP8, DataType.INT4, DataType.FP4, DataType.E8M0])
def test_numpy_lacks_some_types(name):
    with pytest.raises(TypeError, match=f"numpy itself has no type for {name}"):
        nptype(name)


def test_types_of_numpy_alone_are_refused():
    with pytest.raises(ValueError, match="no tensor has the element type complex128; there are float32, float16,"):
        data_type(complex)


def test_type_is_printed_with_its_shape():
    assert str(TensorType(F32, (5, -1))) == "float32[5,-1]"


def test_type_of_a_small_array_keeps_its_value():
    array = np.arange(3)

    assert TensorType.of(array).ints() == [0, 1, 2]


def test_type_of_a_large_array_drops_its_value():
    assert TensorType.of(np.zeros(LARGEST_KNOWN_VALUE + 1, np.int8)).value is None


def test_value_has_no_part_in_equality():
    assert TensorType.of(np.arange(3)) == TensorType(np.dtype(np.int64), (3,))


def test_value_does_not_outlive_a_change_of_shape():
    assert TensorType.of(np.arange(3)).with_shape([1, 3]).value is None


def test_value_does_not_outlive_a_change_of_type():
    assert TensorType.of(np.arange(3)).with_dtype(np.int32) == TensorType(np.dtype(np.int32), (3,))


def test_unknown_value_has_no_ints():
    assert TensorType(np.dtype(np.int64)).ints() is None


@pytest.mark.parametrize("shape", [(0, 2**36, 2**36), (2**36, 0, 2**36), (2**36, 2**36, 0), (2**36, 2**36, -1)])
def test_empty_tensor_has_no_longer_axes_than_others(shape):
    """XLA ends the process where the product of the other lengths overflows."""
    assert not TensorType(np.dtype(np.int8), shape).is_possible
    assert TensorType(np.dtype(np.int8), tuple(min(length, 2**20) for length in shape)).is_possible


def test_volume_is_unknown_where_a_length_is():
    assert [TensorType(F32, shape).volume for shape in ((), (2, 3), (0, 3), (2, -1))] == [1, 6, 0, -1]


@pytest.mark.parametrize(
    ("dtype", "answers"),
    [
        (np.float32, (True, False, False, False)),
        (np.float64, (True, False, False, False)),
        (np.int64, (False, True, True, False)),
        (np.int8, (False, True, False, False)),
        (np.uint8, (False, True, False, False)),
        (np.bool_, (False, False, False, True)),
    ],
)
def test_type_knows_its_kind(dtype, answers):
    x = TensorType(np.dtype(dtype))

    assert (x.is_float, x.is_integer, x.is_index, x.is_bool) == answers


# ---------------------------------------------------------------------------- shapes


@given(SHAPES, SHAPES)
def test_broadcast_agrees_with_numpy_for_equal_ranks(a, b):
    try:
        expected = np.broadcast_shapes(a, b) if len(a) == len(b) else None
    except ValueError:
        expected = None

    if expected is None:
        with pytest.raises(LayerError):
            broadcast(a, b)
    else:
        assert broadcast(a, b) == expected


@pytest.mark.parametrize(
    ("lengths", "expected"), [((-1, 1), -1), ((-1, -1), -1), ((-1, 3), 3), ((3, -1, 1), 3), ((0, -1), 0), ((0, 1), 0)]
)
def test_unknown_length_stretches_to_whatever_is_known(lengths, expected):
    assert broadcast(*((length,) for length in lengths)) == (expected,)


def test_error_of_a_broadcast_lists_the_ranks():
    with pytest.raises(LayerError, match="the inputs have 2, 1 and 0 axes"):
        broadcast((1, 1), (1,), ())


def test_error_of_a_broadcast_names_the_axis():
    with pytest.raises(LayerError, match="axis 1 has 2, 3 and 1 elements"):
        broadcast((5, 2), (1, 3), (1, 1))


def test_unknown_length_agrees_with_any():
    assert agree((2, -1), (-1, 3))


@pytest.mark.parametrize("other", [(2,), (2, 4), (2, 3, 1)])
def test_known_lengths_agree_only_if_equal(other):
    assert not agree((2, 3), other)


def test_merged_shape_knows_what_either_does():
    assert merge((2, -1, -1), (-1, 3, -1)) == (2, 3, -1)


# ---------------------------------------------------------------------------- axes


@pytest.mark.parametrize(("axis", "expected"), [(0, 0), (2, 2), (-1, 2), (-3, 0)])
def test_negative_axis_counts_from_the_end(axis, expected):
    assert normal_axis(axis, 3) == expected


@pytest.mark.parametrize("axis", [3, -4])
def test_axis_past_the_rank_is_an_error(axis):
    with pytest.raises(LayerError, match=rf"axis {axis} is not one of the 3 axes \(0 to 2, or negative from the end\)"):
        normal_axis(axis, 3)


def test_scalar_has_no_axis():
    with pytest.raises(LayerError, match="the iterator's axis 0 is not one of the axes: there are none"):
        normal_axis(0, 0, "the iterator's axis")


def test_bitmask_names_an_axis_by_each_bit():
    assert axes_of(0b101, 3) == (0, 2)


@pytest.mark.parametrize("mask", [0b1000, -1])
def test_bitmask_past_the_rank_is_an_error(mask):
    with pytest.raises(LayerError, match="has bits past the 3 axes of the input"):
        axes_of(mask, 3)


SEQUENCES = st.builds(
    lambda element, is_empty: SequenceType(F32, element=element, is_empty=is_empty),
    st.none() | st.lists(st.sampled_from([-1, 2, 3]), max_size=2).map(tuple),
    st.booleans(),
)


@given(SEQUENCES, SEQUENCES, SEQUENCES)
def test_sequences_are_joined_in_any_order(a, b, c):
    """Otherwise the types of states that depend on each other might change without end."""
    assert a.joined(a) == a
    assert a.joined(b) == b.joined(a)
    assert a.joined(b).joined(c) == a.joined(b.joined(c))
