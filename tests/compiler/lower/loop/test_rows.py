"""Loops on GPUs stack and read rows of types of less than a byte as bytes: XLA copies no parts of one there."""

import re

import jax
import numpy as np
import pytest

import netloop as trt
from netloop.compiler.lower.loop.rows import in_bytes, of_type
from netloop.values.types import NUMPY_TYPES
from tests.support.networks import WHILE, Op, cast, combine, constant, counted, counter, mark, stacked

SMALL = [trt.DataType.INT2, trt.DataType.UINT2, trt.int4, trt.uint4, trt.fp4]
each_type = pytest.mark.parametrize("dtype", SMALL, ids=str)


@each_type
def test_every_number_of_a_type_is_the_same_as_a_byte(dtype):
    least, most = (-8, 7) if dtype in (trt.int4, trt.fp4) else (0, 3)
    numbers = np.arange(least, most + 1).astype(NUMPY_TYPES[dtype])

    stored = jax.jit(lambda rows: in_bytes(rows, "gpu"))(numbers)
    assert stored.dtype.itemsize == 1
    assert np.asarray(of_type(stored, numbers.dtype)).tobytes() == numbers.tobytes()


def looped(dtype: trt.DataType, is_open: bool) -> trt.INetworkDefinition:
    """Rows of three numbers, read and stacked; with a condition the loop is a while loop."""
    network = trt.INetworkDefinition()
    x = cast(network, network.add_input("x", trt.int32, (20, 3)), dtype)
    loop = counted(network, 20)
    if is_open:
        loop.add_trip_limit(combine(network, counter(network, loop), 15, Op.LESS), WHILE)
    row = loop.add_iterator(x).get_output(0)
    return mark(network, y=cast(network, stacked(loop, row, constant(network, 20, np.int32)), trt.int32))


@each_type
@pytest.mark.parametrize("is_open", [False, True])
def test_rows_in_loops_of_gpus_are_whole_bytes(dtype, is_open, monkeypatch):
    network = looped(dtype, is_open)
    x = np.arange(60, dtype=np.int32).reshape(20, 3) % 2
    with monkeypatch.context() as patched, jax.enable_x64(True):
        patched.setattr("jax.default_backend", lambda: "gpu")
        function, weights = trt.to_jax(network, passes=[])
        text = jax.jit(function).lower(weights, {"x": x}).as_text()

    moved = re.findall(r"stablehlo.dynamic_(?:update_)?slice .* : \(tensor<20x3x(\w+)>", text)
    assert moved
    assert set(moved) <= {"i8", "ui8"}
    np.testing.assert_array_equal(trt.compile(network)({"x": x})["y"], trt.evaluate(network, {"x": x})["y"])
