"""Constants of every element type, from every source."""

import numpy as np
import pytest

import netloop
from tests.support.openvino_models import F, check, constant, document, load, ops, ov


def test_constants_share_bytes_and_lie_unaligned():
    arrays = [np.bool_([1, 0, 1]), F([1.5, 2.5]), np.int8([1, 0, 1]), np.int64([-3]), np.uint8([1, 0, 1])]
    model = ov.Model([ops.result(constant(array)) for array in arrays], [])

    assert b'offset="3" size="8"' in document(model)[0]
    check(load(model), {}, *arrays)


@pytest.mark.parametrize(
    ("type", "numbers"),
    [("i4", [-8, 7, -1, 3, 5]), ("u4", [0, 15, 9, 3, 5]), ("u2", [0, 3, 1, 2, 2])],
)
def test_several_numbers_of_a_byte_are_taken_apart(type, numbers):
    packed = ov.op.Constant(getattr(ov.Type, type), ov.Shape([5]), numbers)

    check(load(ov.Model([ops.result(ops.convert(packed, "i32"))], [])), {}, np.int32(numbers))


@pytest.mark.parametrize("type", ["f64", "f16", "bf16", "i16", "u16", "u32", "u64", "f8e4m3", "f8e5m2"])
def test_numbers_of_every_type_are_read(type):
    made = ov.op.Constant(getattr(ov.Type, type), ov.Shape([3]), [1, 2, 3])

    check(load(ov.Model([ops.result(ops.convert(made, "f32"))], [])), {}, F([1, 2, 3]))


def test_truth_is_any_byte_but_zero():
    xml, _ = document(ov.Model([ops.result(constant(np.bool_([1, 0, 1])))], []))

    check(netloop.openvino.load(xml, b"\x02\x00\xff"), {}, np.bool_([1, 0, 1]))


def test_constant_without_elements_needs_no_weights():
    xml, _ = document(ov.Model([ops.result(constant(np.zeros((0, 2), F)))], []))

    check(netloop.openvino.load(xml), {}, np.zeros((0, 2), F))
