import ml_dtypes
import numpy as np
import pytest

from netloop.model.graph.argument_hints import int_hint, member_hint, tensor_hint
from netloop.values.enums import DataType, ElementWiseOperation, ReduceOperation, TripLimit


@pytest.mark.parametrize(
    ("value", "array"),
    [
        (3, "(), np.array(3, np.int32)"),
        (np.int64(3), "(), np.array(3, np.int32)"),
        (2.5, "(), np.array(2.5, np.float32)"),
        (True, "(), np.array(True, np.bool_)"),
        ([1, 2], "(2,), np.array([1, 2], np.int32)"),
        ((1, 2.5), "(2,), np.array((1, 2.5), np.float32)"),
        (np.ones((2, 3), np.float16), "(2, 3), array"),
        (np.ones(3), "(3,), array.astype(np.float32)"),
    ],
)
def test_number_or_array_becomes_a_constant(value, array):
    assert tensor_hint(value) == f": write network.add_constant({array}).get_output(0)"


def test_none_is_an_output_that_there_is_not():
    assert "layer without an output i is None" in tensor_hint(None)


@pytest.mark.parametrize("value", ["x", [], ["x"], object(), {1: 2}, TripLimit.COUNT])
def test_other_objects_are_no_constants(value):
    assert tensor_hint(value) == ""


class TorchType:
    def __repr__(self):
        return "torch.bfloat16"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (np.float32, "netloop.float32"),
        (np.dtype("int64"), "netloop.int64"),
        (ml_dtypes.bfloat16, "netloop.bfloat16"),
        (np.dtype(ml_dtypes.float8_e4m3fn), "DataType.FP8"),
        (TorchType(), "netloop.bfloat16"),
        (float, "netloop.float32"),
        (int, "netloop.int32"),
        (bool, "netloop.bool"),
        ("float16", "netloop.float16"),
        ("np.float16", "netloop.float16"),
        ("a word", "netloop.float32, or another element type"),
        (3, "netloop.float32, or another element type"),
        (None, "netloop.float32, or another element type"),
    ],
)
def test_type_of_another_library_has_a_name_here(value, written):
    assert member_hint(value, DataType) == f": write {written}"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (ReduceOperation.SUM, "ElementWiseOperation.SUM"),
        ("sum", "ElementWiseOperation.SUM"),
        ("trt.ElementWiseOperation.POW", "ElementWiseOperation.POW"),
        (0, "one of ElementWiseOperation.SUM, ElementWiseOperation.PROD, ElementWiseOperation.MAX, ..."),
        (
            ReduceOperation.AVG,
            "one of ElementWiseOperation.SUM, ElementWiseOperation.PROD, ElementWiseOperation.MAX, ...",
        ),
    ],
)
def test_member_is_found_by_its_name(value, written):
    assert member_hint(value, ElementWiseOperation) == f": write {written}"


def test_object_that_is_no_word_has_no_member():
    assert member_hint(object(), TripLimit) == ""


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ((0, 1), ": it has bit i for axis i, so write 1 << 0 | 1 << 1"),
        ([2], ": it has bit i for axis i, so write 1 << 2"),
        ((-1,), ": it has bit i for axis i, such as 1 << 0 | 1 << 1 for axes 0 and 1"),
        ("01", ""),
        (1.5, ""),
    ],
)
def test_axes_become_a_bit_mask(value, hint):
    assert int_hint("IReduceLayer.axes", value) == hint
    assert int_hint("IGatherLayer.axis", value) == ""
