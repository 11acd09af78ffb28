"""Bit casts, against numpy's views and the bit patterns of the standards."""

import jax.numpy as jnp
import numpy as np
import pytest

import netloop as trt
from netloop.model.layers.bits import IBitCastLayer
from netloop.values.types import NUMPY_TYPES, TensorType
from tests.support.laws import Case, check_laws, refuses
from tests.support.networks import mark

# fmt: off
BITS = [
    (trt.float32,  trt.uint32,  [1.0, -2.0, 0.0], [0x3F800000, 0xC0000000, 0]),
    (trt.uint32,   trt.float32, [0x3F800000],     [1.0]),
    (trt.int32,    trt.uint32,  [-1, 5],          [2**32 - 1, 5]),
    (trt.float64,  trt.int64,   [1.0, -2.0],      [0x3FF0000000000000, -(2**62)]),
    (trt.float16,  trt.int16,   [1.0, -1.0],      [0x3C00, 0xBC00 - 2**16]),
    (trt.bfloat16, trt.uint16,  [1.5],            [0x3FC0]),
    (trt.uint16,   trt.float16, [0x3C00],         [1.0]),
    (trt.int8,     trt.uint8,   [-1, 127],        [255, 127]),
    (trt.fp8,      trt.uint8,   [0.5, -2],        [0x30, 0xC0]),
    (trt.uint8,    trt.e5m2,    [0x3C, 0xBC],     [1.0, -1.0]),
    (trt.int4,     trt.uint4,   [-8, -1, 7],      [8, 15, 7]),
    (trt.uint4,    trt.int4,    [8, 15, 7],       [-8, -1, 7]),
    (trt.uint4,    trt.fp4,     [2, 10, 7],       [1.0, -1.0, 6.0]),
    (trt.fp4,      trt.uint4,   [1.0, -1.0, 6.0], [2, 10, 7]),
    (trt.int2,     trt.uint2,   [-2, -1, 1],      [2, 3, 1]),
]
# fmt: on


@pytest.mark.parametrize(("from_type", "to_type", "given", "expected"), BITS)
def test_bits_are_read_as_another_type(from_type, to_type, given, expected):
    x, wanted = np.array(given).astype(NUMPY_TYPES[from_type]), np.array(expected).astype(NUMPY_TYPES[to_type])

    check_laws(Case("bits", IBitCastLayer(to_type=to_type), (x,), wanted, 0))


def test_bits_of_a_scalar():
    check_laws(Case("scalar", IBitCastLayer(to_type=trt.int32), (np.float32(1),), np.int32(0x3F800000)))


def test_bits_of_another_number_are_refused():
    wanted = "the input is float32[2], with 32 bits per element, but int64 has 64"

    refuses(IBitCastLayer(to_type=trt.int64), np.zeros(2, np.float32), match=wanted)


def test_tiny_types_have_as_many_bits_as_they_have():
    x = TensorType(np.dtype(jnp.int4), (2,))

    refuses(IBitCastLayer(to_type=trt.int8), x, match="with 4 bits per element, but int8 has 8")


@pytest.mark.parametrize(("dtype", "to_type"), [(np.bool_, trt.uint8), (np.uint8, trt.bool)])
def test_bool_has_no_bits(dtype, to_type):
    refuses(IBitCastLayer(to_type=to_type), np.zeros(2, dtype), match="bool has no bits of its own")


def test_bit_cast_in_a_network_is_told_to_be_netloops_own():
    network = trt.INetworkDefinition()
    layer = network.add_bit_cast(network.add_input("x", trt.float32, (2,)), trt.int32)
    layer.name = "bits"
    mark(network, y=layer.get_output(0))

    (found,) = trt.check(network)
    assert (found.code, found.what) == ("NL404", "'bits' reinterprets bits as another type")
    assert np.asarray(trt.compile(network)({"x": np.float32([1, 0])})["y"]).tolist() == [0x3F800000, 0]
