import os
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netloop import FileFormatError
from netloop.formats import wts
from tests.support.examples import examples

BINARY = b"2\nbias 0 (2,) " + struct.pack("<2f", 1, -0.5) + b"\nids 3 (1, 2) " + struct.pack("<2i", 7, -1) + b"\n"
TEXT = b"2\nbias 0 3 3f800000 0 bf000000\nids 3 1 ffffffff\n"


def load(tmp_path, data):
    path = tmp_path / "some.wts"
    path.write_bytes(data)
    return wts.load(path)


def refused(tmp_path, data):
    with pytest.raises(FileFormatError) as caught:
        load(tmp_path, data)
    return caught.value.findings[0]


def loaded_or_refused(tmp_path, data):
    """The arrays of a file, or None if it is refused because of one of its bytes."""
    try:
        return load(tmp_path, data)
    except FileFormatError as error:
        found = error.findings[0]
    assert 0 <= int(found.where.rpartition("byte ")[2]) <= len(data)
    return None


def test_version_2_is_raw_bytes_in_a_shape(tmp_path):
    arrays = load(tmp_path, BINARY)

    assert list(arrays) == ["bias", "ids"]
    assert arrays["bias"].dtype == np.float32
    assert arrays["bias"].tolist() == [1, -0.5]
    assert arrays["ids"].dtype == np.int32
    assert arrays["ids"].tolist() == [[7, -1]]


def test_version_1_is_bit_patterns_in_hexadecimal(tmp_path):
    arrays = load(tmp_path, TEXT)

    assert arrays["bias"].tolist() == [1, 0, -0.5]
    assert arrays["ids"].tolist() == [-1]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"x 1 2 3c00 c000", np.array([1, -2], np.float16)),
        (b"x 2 2 7f ff", np.array([127, -1], np.int8)),
        (b"x 4 2 1 00", np.array([True, False])),
        (b"x 8 1 100000000", np.array([1 << 32], np.int64)),
        (b"x 0 0", np.array([], np.float32)),
        (b"x 0 1 3F800000 \r", np.array([1], np.float32)),
    ],
)
def test_version_1_has_all_types(tmp_path, line, expected):
    array = load(tmp_path, b"1\n" + line + b"\n")["x"]

    assert array.dtype == expected.dtype
    assert np.array_equal(array, expected)


def test_a_file_may_have_no_buffer(tmp_path):
    assert load(tmp_path, b"0\n") == {}


ARRAYS = {
    "float32": np.array([[1.5, -0.0], [np.inf, np.nan]], np.float32),
    "float16": np.array([0.1], np.float16),
    "int8": np.array([[-128], [127]], np.int8),
    "int32": np.array(5, np.int32),
    "bool": np.array([True, False]),
    "int64": np.array([[[1 << 40]]]),
    "empty": np.zeros((3, 0), np.float32),
    "big-endian": np.array([1, 2], ">f4"),
    "transposed": np.arange(6, dtype=np.float32).reshape(2, 3).T,
}


@pytest.mark.parametrize("name", ARRAYS)
def test_what_is_saved_is_loaded(tmp_path, name):
    path = tmp_path / "some.wts"
    wts.save(path, {"before": np.zeros(1, np.int8), name: ARRAYS[name]})

    loaded = wts.load(path)

    assert list(loaded) == ["before", name]
    assert loaded[name].dtype == ARRAYS[name].dtype.newbyteorder("=")
    assert loaded[name].shape == ARRAYS[name].shape
    assert loaded[name].tobytes() == ARRAYS[name].astype(loaded[name].dtype).tobytes()


def test_a_saved_file_has_these_bytes(tmp_path):
    wts.save(tmp_path / "some.wts", {"bias": np.array([1, -0.5], np.float32), "ids": np.array([[7, -1]], np.int32)})

    assert (tmp_path / "some.wts").read_bytes() == BINARY


def test_loaded_arrays_can_be_written_to(tmp_path):
    assert all(array.flags.writeable for array in load(tmp_path, BINARY).values())


@pytest.mark.parametrize(
    "weights",
    [
        {"a b": np.zeros(1)},
        {"": np.zeros(1)},
        {"a\n": np.zeros(1)},
        {"a" * 5000: np.zeros(1)},
        {"x": np.zeros(1)},
        {"x": np.array("s")},
    ],
)
def test_what_no_file_can_hold_is_refused(tmp_path, weights):
    with pytest.raises(ValueError, match=r"name|the format has"):
        wts.save(tmp_path / "some.wts", weights)

    assert os.listdir(tmp_path) == []


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "some.wts"
    wts.save(path, {"x": np.zeros(2, np.float32)})
    before = path.read_bytes()

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(wts.Path, "replace", full)
    with pytest.raises(OSError, match="no space"):
        wts.save(path, {"x": np.ones(3, np.float32)})

    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["some.wts"]


@pytest.mark.parametrize("data", [BINARY, TEXT], ids=["version 2", "version 1"])
def test_a_file_cut_short_anywhere_is_refused(tmp_path, data):
    for length in range(len(data)):
        assert refused(tmp_path, data[:length]).code == "NL701"


# fmt: off
MALFORMED = {
    "empty":                    (b"",                                       "the number of buffers"),
    "no number":                (b"x\n",                                    "the number of buffers"),
    "negative number":          (b"-1\n",                                   "the number of buffers"),
    "huge number":              (b"9" * 5000 + b"\n",                       "the number of buffers"),
    "more than there are":      (b"999999999\n" + BINARY[2:],               "a name, a type and a shape"),
    "fewer than there are":     (b"1\n" + BINARY[2:],                       "follow the last of 1"),
    "trailing bytes":           (BINARY + b"\n",                            "1 bytes follow the last of 2"),
    "no name":                  (b"1\n 0 (1,) 1234\n",                      "a name, a type and a shape"),
    "name that is not UTF-8":   (b"1\n\xff\xfe 0 (1,) 1234\n",              "is not UTF-8"),
    "name twice":               (b"2\nx 2 (1,) 1\nx 2 (1,) 1\n",            "two buffers are named 'x'"),
    "unknown type":             (b"1\nx 5 (1,) 1\n",                        "'x' is of type 5"),
    "negative type":            (b"1\nx -1 (1,) 1\n",                       "a name, a type and a shape"),
    "type that is no number":   (b"1\nx float (1,) 1\n",                    "a name, a type and a shape"),
    "negative length":          (b"1\nx 0 (-1,) 1234\n",                    "the shape of buffer 'x'"),
    "length that is no number": (b"1\nx 0 (a,) 1234\n",                     "the shape of buffer 'x'"),
    "shape that does not end":  (b"1\nx 0 (1, 1234\n",                      "the shape of buffer 'x'"),
    "no space after the shape": (b"1\nx 0 (1,)1234\n",                      "the shape of buffer 'x'"),
    "nine axes":                (b"1\nx 0 (1,1,1,1,1,1,1,1,1) 1234\n",      "has the shape (1, 1"),
    "a thousand axes":          (b"1\nx 0 (" + b"1," * 1000 + b") 1234\n",  "the shape of buffer 'x'"),
    "name that does not end":   (b"1\n" + b"x" * 5000 + b" 0 (1,) 1234\n",  "a name, a type and a shape"),
    "huge length":              (b"1\nx 0 (999999999999999999,) 1234\n",    "needs 3999999999999999996 bytes"),
    "huge product":             (b"1\nx 2 (4294967296, 4294967296) 1\n",    "has the shape (4294967296"),
    "huge beside an empty one": (b"1\nx 2 (0, 4294967296, 4294967296) \n",  "has the shape (0, 4294967296"),
    "length of 5000 digits":    (b"1\nx 0 (" + b"9" * 5000 + b",) 1\n",     "the shape of buffer 'x'"),
    "more bytes than told":     (b"1\nx 2 (1,) 12\n",                       "no newline follows buffer 'x'"),
    "bool of 2":                (b"1\nx 4 (2,) \0\2\n",                     "bytes other than 0 and 1"),
    "text, too few":            (b"1\nx 0 3 0 000000\n",                    "needs 3 elements, and has 2"),
    "text, too many":           (b"1\nx 0 1 0 0\n",                         "needs 1 elements, and has 2"),
    "text, huge count":         (b"1\nx 0 999999999999999999 0\n",          "is too short for 999999999999999999"),
    "text, negative count":     (b"1\nx 0 -1 0\n",                          "the number of elements of buffer 'x'"),
    "text, no hexadecimal":     (b"1\nx 0 1 0x3f8\n",                       "has the element b'0x3f8'"),
    "text, too wide":           (b"1\nx 1 1 3c000\n",                       "has the element b'3c000'"),
    "text, bool of 2":          (b"1\nx 4 1 2\n",                           "has the element b'2'"),
    "text, then binary":        (b"2\nx 2 1 1\ny 2 (1,) 1\n",               "the number of elements of buffer 'y'"),
    "binary, then text":        (b"2\nx 2 (1,) 1\ny 2 1 1\n",               "the shape of buffer 'y'"),
}
# fmt: on


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_file_is_refused_with_the_reason(tmp_path, name):
    data, message = MALFORMED[name]

    finding = refused(tmp_path, data)

    assert message in finding.what
    assert f"{tmp_path / 'some.wts'}, byte " in finding.where
    assert finding.why
    assert finding.fix


def test_a_finding_tells_the_byte(tmp_path):
    assert refused(tmp_path, b"1\nx 9 (1,) 1\n").where.endswith("byte 2")


def test_a_claim_takes_no_memory(tmp_path):
    tracemalloc.start()
    refused(tmp_path, b"999999999\nx 0 (99999999, 99999999) 1234\n")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 1 << 20


@examples(300)
@given(st.sampled_from([BINARY, TEXT]), st.data())
def test_a_damaged_file_is_loaded_or_refused(tmp_path, data, draw):
    damaged = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 4))):
        begin = draw.draw(st.integers(0, len(damaged)))
        end = draw.draw(st.integers(begin, min(len(damaged), begin + 4)))
        damaged[begin:end] = draw.draw(
            st.one_of(st.binary(max_size=4), st.sampled_from([b"(", b" ", b"\n", b"9", b"-"]))
        )
    arrays = loaded_or_refused(tmp_path, bytes(damaged))

    assert arrays is None or sum(array.nbytes for array in arrays.values()) <= 8 * len(damaged)


@examples(200)
@given(st.binary(max_size=60))
def test_any_bytes_are_loaded_or_refused(tmp_path, data):
    arrays = loaded_or_refused(tmp_path, b"1\n" + data)

    assert arrays is None or len(arrays) == 1
