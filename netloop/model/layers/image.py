"""Image files."""

import io
from importlib import import_module
from typing import Any, NoReturn

import numpy as np

from netloop.model.graph import ITensor, NetworkBase, Operation, layer
from netloop.values.diagnostics import LayerError, require
from netloop.values.enums import LayerType, PixelFormat
from netloop.values.types import UNKNOWN, Array, TensorType

# fmt: off
STARTS: dict[str, tuple[bytes, ...]] = {
    "BMP":      (b"BM",),
    "JPEG":     (b"\xff\xd8\xff",),
    "JPEG2000": (b"\x00\x00\x00\x0cjP  ", b"\xff\x4f\xff\x51"),
    "TIFF":     (b"II*\x00", b"MM\x00*", b"II+\x00", b"MM\x00+"),
    "PNG":      (b"\x89PNG",),
    "WEBP":     (b"RIFF",),
    "PPM":      (b"P1", b"P2", b"P3", b"P4", b"P5", b"P6"),
}
# fmt: on
"""How the files of each format start, by Pillow's names; untrusted bytes do not reach its other decoders."""

MOST_PIXELS = 1 << 26
"""The most pixels of an image: a file of a few bytes may declare more than memory holds."""

MODES = {PixelFormat.RGB: "RGB", PixelFormat.BGR: "RGB", PixelFormat.GRAYSCALE: "L"}
"""Pillow's modes of images."""


@layer(LayerType.IMAGE_DECODER, "ImageDecoder")
class IImageDecoderLayer(Operation):
    """The pixels of an image file.

    Input 1-D, uint8: the bytes of a BMP, JPEG, JPEG 2000, TIFF, PNG, WebP or PNM file. Output uint8 [height, width,
    channels], with 1 channel for grayscale and 3 otherwise; an image without pixels, of height and width 0, if the
    bytes are not such a file or are damaged. Of a file with several images, the first is read.

    The height and the width are data-dependent: an engine computes the layer on the host, and ``to_jax``, which needs
    fixed shapes, refuses it. It needs the package Pillow (``pip install 'netloop[images]'``); without it, or if the
    image has more than 2 ** 26 pixels, the run fails. A netloop extension with the meaning of ONNX's operator
    ImageDecoder.

    Attributes:
        pixel_format: the channels and their order: RGB, BGR or GRAYSCALE.
    """

    pixel_format: PixelFormat = PixelFormat.RGB

    def infer(self, data: TensorType) -> TensorType:
        fits = data.rank == 1 and data.dtype == np.uint8
        require(
            fits,
            f"the input is {data}, but must be 1-D and uint8, as the bytes of a file are",
            why="an image is decoded from the bytes of its file",
        )
        return TensorType(np.dtype(np.uint8), (UNKNOWN, UNKNOWN, self._channels))

    @property
    def _channels(self) -> int:
        return 1 if self.pixel_format is PixelFormat.GRAYSCALE else 3

    def beyond_tensorrt(self, data: TensorType) -> str:
        return "decodes image files"

    def evaluate(self, data: Array) -> Array:
        pixels = _decoded(data.tobytes(), MODES[self.pixel_format])
        if pixels is None:
            return np.zeros((0, 0, self._channels), np.uint8)
        pixels = pixels.reshape(*pixels.shape[:2], self._channels)
        return np.ascontiguousarray(pixels[..., ::-1] if self.pixel_format is PixelFormat.BGR else pixels)

    def lower(self, data: Any) -> NoReturn:
        raise AssertionError("the size of the image is data-dependent, and programs have fixed shapes")


def _decoded(data: bytes, mode: str) -> Array | None:
    """The pixels of a file; None if it has no image that can be decoded.

    Raises:
        LayerError: Pillow is missing, or the image has too many pixels.
    """
    formats = [name for name, starts in STARTS.items() if data.startswith(starts)]
    if not formats:
        return None
    image = _pillow()
    try:
        with image.open(io.BytesIO(data), formats=formats) as opened:
            _require_size(*opened.size)
            return np.asarray(opened.convert(mode))
    except (image.DecompressionBombWarning, image.DecompressionBombError) as error:
        raise LayerError(str(error), *TOO_LARGE) from None
    except (LayerError, MemoryError):
        raise
    except Exception:  # each of Pillow's decoders has its own exceptions, of which damaged bytes cause many
        return None


TOO_LARGE = "a small file may declare an image that fills the memory", "decode it elsewhere"


def _require_size(width: int, height: int) -> None:
    what = f"the image has {width} x {height} pixels, and may have {MOST_PIXELS}"
    require(width * height <= MOST_PIXELS, what, *TOO_LARGE)


def _pillow() -> Any:
    try:
        return import_module("PIL.Image")
    except ImportError as error:
        what, fix = "images are decoded by the package Pillow, which is not installed", "pip install 'netloop[images]'"
        raise LayerError(what, "netloop has no decoders of its own", fix) from error


class ImageMethods(NetworkBase):
    """The ``add_`` methods of this family."""

    FAMILY = "images"

    def add_image_decoder(self, input: ITensor, pixel_format: PixelFormat = PixelFormat.RGB) -> IImageDecoderLayer:
        """The pixels of an image file, given its bytes; a netloop extension.

        Input 1-D, uint8: the bytes of a BMP, JPEG, JPEG 2000, TIFF, PNG, WebP or PNM file. Output uint8
        [height, width, channels], with 1 channel for grayscale and 3 otherwise; an image without pixels, of height and
        width 0, if the bytes are not such a file or are damaged. Of a file with several images, the first is read.

        The height and the width are data-dependent: an engine computes the layer on the host, and ``to_jax``, which
        needs fixed shapes, refuses it. It needs the package Pillow (``pip install 'netloop[images]'``); without it, or
        if the image has more than 2 ** 26 pixels, the run fails. A netloop extension with the meaning of ONNX's
        operator ImageDecoder.

        Args:
            input: the input.
            pixel_format: the channels and their order: RGB, BGR or GRAYSCALE.
        """
        return self.add(IImageDecoderLayer(pixel_format=pixel_format), input=input)
