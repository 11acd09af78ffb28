"""The bytes of arrays in the files of models."""

import numpy as np

from netloop.formats.onnx_graph.node_builder import FP4, INT2, INT4, UINT2, UINT4
from netloop.values.types import Array

BITS = {FP4: 4, INT4: 4, UINT4: 4, INT2: 2, UINT2: 2}
"""The bits of an element, for types with several elements in a byte."""


def array_bytes(array: Array) -> bytes:
    """The bytes of an array: little-endian, small elements packed with the first in the lowest bits."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if array.dtype in BITS:
        bits = BITS[array.dtype]
        count = 8 // bits
        codes = flat.view(np.uint8) & np.uint8((1 << bits) - 1)
        codes = np.concatenate([codes, np.zeros(-codes.size % count, np.uint8)]).reshape(-1, count)
        return np.bitwise_or.reduce(codes << np.arange(0, 8, bits, dtype=np.uint8), axis=1).tobytes()
    return flat.astype(flat.dtype.newbyteorder("<"), copy=False).tobytes()
