import io
import sys

import numpy as np
import pytest

import netloop
from netloop.model.layers.image import IImageDecoderLayer
from netloop.values.enums import PixelFormat
from netloop.values.types import TensorType
from tests.support.laws import refuses

RED, DARK = (255, 0, 0), (10, 20, 30)
TWO = b"P6 1 2 255\n" + bytes([*RED, *DARK])
"""An image of two rows of one pixel, in a format without compression."""


def of_bytes(data, form=PixelFormat.RGB):
    """A network that decodes a file, and its inputs."""
    network = netloop.INetworkDefinition()
    decoded = network.add_image_decoder(network.add_input("data", netloop.uint8, (-1,)), form).get_output(0)
    decoded.name = "pixels"
    network.mark_output(decoded)
    return network, {"data": np.frombuffer(data, np.uint8)}


def decoded(data, form=PixelFormat.RGB):
    """The pixels by the engine, which are those of the reference."""
    pytest.importorskip("PIL")
    network, inputs = of_bytes(data, form)
    found = np.asarray(netloop.compile(network)(inputs)["pixels"])
    np.testing.assert_array_equal(found, netloop.evaluate(network, inputs)["pixels"])
    return found


@pytest.mark.parametrize(
    ("form", "pixels"),
    [
        (PixelFormat.RGB, [[RED], [DARK]]),
        (PixelFormat.BGR, [[RED[::-1]], [DARK[::-1]]]),
        (PixelFormat.GRAYSCALE, [[[76]], [[18]]]),  # 0.299 R + 0.587 G + 0.114 B, rounded
    ],
)
def test_pixels_are_those_of_the_file(form, pixels):
    assert decoded(TWO, form).tolist() == [[list(value) for value in row] for row in pixels]


def test_gray_file_has_three_equal_channels():
    assert decoded(b"P5 2 1 255\n" + bytes([7, 200])).tolist() == [[[7] * 3, [200] * 3]]


@pytest.mark.parametrize("data", [b"", b"no image", TWO[:-1]])
def test_what_is_no_image_of_the_standard_has_no_pixels(data):
    assert decoded(data).shape == (0, 0, 3)
    assert decoded(data, PixelFormat.GRAYSCALE).shape == (0, 0, 1)


def test_only_formats_of_the_standard_are_read():
    files = {form: io.BytesIO() for form in ("GIF", "PNG")}
    for form, file in files.items():
        pytest.importorskip("PIL.Image").new("RGB", (2, 1), RED).save(file, form)

    assert [decoded(file.getvalue()).size for file in files.values()] == [0, 6]


@pytest.mark.parametrize("size", [b"8192 8193", b"12000 12000", b"99999 99999"])
def test_image_of_too_many_pixels_is_refused_before_it_is_decoded(size):
    pytest.importorskip("PIL")
    network, inputs = of_bytes(b"P6 " + size + b" 255\n")

    with pytest.raises(netloop.ExecutionError, match="a small file may declare an image that fills the memory"):
        netloop.compile(network)(inputs)


def test_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    network, inputs = of_bytes(TWO)

    with pytest.raises(netloop.ExecutionError, match=r"fix: pip install 'netloop\[images\]'"):
        netloop.evaluate(network, inputs)


def test_bytes_have_one_axis():
    data = TensorType(np.dtype(np.uint8), (2, 3))
    refuses(IImageDecoderLayer(), data, match="the input is uint8[2,3], but must be 1-D and uint8")
    refuses(IImageDecoderLayer(), TensorType(np.dtype(np.int8), (3,)), match="must be 1-D and uint8")


def test_nothing_lowers_a_data_dependent_size():
    with pytest.raises(AssertionError, match="programs have fixed shapes"):
        IImageDecoderLayer().lower(np.zeros(1))
