import io

import numpy as np
import pytest

import netloop as trt
from netloop.model.plan import npy_arrays
from netloop.values.enums import DataType
from netloop.values.string_arrays import string_array
from netloop.values.types import NUMPY_TYPES

NUMBERS = [numpy_type for numpy_type in NUMPY_TYPES if numpy_type is not DataType.STRING]


def file_of(array, dtype):
    return b"".join(npy_arrays.file_of(array, dtype))


def test_every_element_type_has_a_form():
    assert set(npy_arrays.STORED) == set(NUMBERS)
    assert all(np.dtype(npy_arrays.STORED[dtype]).itemsize == NUMPY_TYPES[dtype].itemsize for dtype in NUMBERS)


@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (0, 4), (1,) * 64], ids=len)
@pytest.mark.parametrize("dtype", [dtype for dtype in NUMBERS if NUMPY_TYPES[dtype].kind != "V"], ids=str)
def test_numpy_reads_the_files(dtype, shape):
    array = np.arange(np.prod(shape, dtype=int)).astype(NUMPY_TYPES[dtype]).reshape(shape)

    read = np.load(io.BytesIO(file_of(array, dtype)), allow_pickle=False)

    assert read.shape == shape
    assert read.tobytes() == array.tobytes()


@pytest.mark.parametrize(("dtype", "array"), [(trt.bfloat16, [1.5]), (trt.fp8, [0.5, -2]), (trt.int4, [-8, 7])])
def test_types_that_numpy_lacks_are_raw_integers(dtype, array):
    array = np.array(array).astype(NUMPY_TYPES[dtype])
    read = np.load(io.BytesIO(file_of(array, dtype)), allow_pickle=False)

    expected = {DataType.BF16: [0x3FC0], DataType.FP8: [0x30, 0xC0], DataType.INT4: [-8, 7]}
    assert read.tolist() == expected[dtype]


@pytest.mark.parametrize("shape", [(), (4,), (2, 2), (0, 4)], ids=str)
def test_strings_are_kept(shape):
    texts = ["", "a\0", "\U0001f600", "x" * 5000]
    array = string_array(texts[: np.prod(shape, dtype=int)]).reshape(shape)
    file = file_of(array, DataType.STRING)

    loaded = npy_arrays.load(memoryview(file), DataType.STRING, shape)
    assert (loaded.shape, loaded.tolist()) == (shape, array.tolist())
    assert not loaded.flags.writeable
    assert np.load(io.BytesIO(file), allow_pickle=False).dtype == np.uint8


def strings_file(*lengths, text=b""):
    contents = np.frombuffer(np.array(lengths, "<i8").tobytes() + text, np.uint8)
    return memoryview(file_of(contents, DataType.UINT8))


@pytest.mark.parametrize(
    ("file", "shape", "message"),
    [
        (strings_file(1, text=b"a"), (2,), "no room for the lengths of 2 strings"),
        (strings_file(1, text=b"a"), (1 << 60, 1 << 60), "no room"),
        (strings_file(1, text=b"ab"), (1,), "do not add up"),
        (strings_file(2, text=b"a"), (1,), "do not add up"),
        (strings_file(-1, 2, text=b"a"), (2,), "do not add up"),
        (strings_file(1, text=b"\xff"), (1,), "utf-8"),
        (strings_file(1, 1, text="é".encode()), (2,), "utf-8"),
        (memoryview(file_of(np.float32([1]), DataType.FLOAT)), (1,), "not the .npy file of UINT8"),
        (memoryview(b""), (0,), "not the .npy file of UINT8"),
    ],
    ids=lambda name: "file" if isinstance(name, memoryview) else repr(name),
)
def test_damaged_strings_are_refused(file, shape, message):
    with pytest.raises(ValueError, match=message):
        npy_arrays.load(file, DataType.STRING, shape)


def test_elements_begin_at_a_multiple_of_64():
    assert all(len(npy_arrays.header(trt.float32, (10**rank,) * rank)) % 64 == 0 for rank in range(20))


def test_numpy_itself_writes_such_a_file():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    written = io.BytesIO()
    np.save(written, array, allow_pickle=False)

    assert written.getvalue() == file_of(array, trt.float32)


RIGHT = file_of(np.array([True, False]), trt.bool)
WRONG = {
    "other type": (RIGHT, trt.int8, (2,)),
    "other shape": (RIGHT, trt.bool, (2, 1)),
    "shorter": (RIGHT[:-1], trt.bool, (2,)),
    "longer": (RIGHT + b"\0", trt.bool, (2,)),
    "far too short": (RIGHT, trt.bool, (10**12, 10**12)),
    "empty and impossible": (npy_arrays.header(trt.bool, (0, 2**63, 2**63)), trt.bool, (0, 2**63, 2**63)),
    "too many axes": (npy_arrays.header(trt.bool, (1,) * 65) + b"\0", trt.bool, (1,) * 65),
    "far too many axes": (RIGHT, trt.bool, (0,) * 20000),
    "no bool": (RIGHT[:-1] + b"\2", trt.bool, (2,)),
    "no int4": (npy_arrays.header(trt.int4, (1,)) + b"\x08", trt.int4, (1,)),
    "of objects": (RIGHT.replace(b"'|b1'", b"'|O' "), trt.bool, (2,)),
    "empty": (b"", trt.bool, (0,)),
}


@pytest.mark.parametrize("name", WRONG)
def test_another_file_is_refused(name):
    data, dtype, shape = WRONG[name]
    with pytest.raises(ValueError, match=r"it is not|it has elements|the shape has|dimension|broken"):
        npy_arrays.load(memoryview(data), dtype, shape)
