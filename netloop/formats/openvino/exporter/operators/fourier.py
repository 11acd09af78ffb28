"""Fourier transforms."""

import numpy as np

from netloop.formats.openvino.exporter.layer_builder import rank_of
from netloop.formats.openvino.exporter.operators import FLOAT, IrPort, LayerBuilder, OnnxNode, exports
from netloop.values.diagnostics import require
from netloop.values.types import UNKNOWN, Shape

TYPES = {(0, 0): ("DFT", 7), (1, 0): ("IDFT", 7), (0, 1): ("RDFT", 9), (1, 1): ("IRDFT", 9)}
"""The operators and their opsets, by ``inverse`` and ``onesided``."""


@exports("DFT")
def transform(build: LayerBuilder, node: OnnxNode, x: IrPort, length: IrPort | None, axis: IrPort) -> IrPort:
    """The transform along one axis; the last axis holds the parts of complex numbers."""
    is_inverse, is_half = node.attributes["inverse"], node.attributes["onesided"]
    require(x.shape is not None and UNKNOWN not in x.shape[-1:], "whether its numbers are complex is not known")
    rank, place = rank_of(x), build.ints(axis)
    require(place is not None, "its axis depends on the data")
    assert place is not None
    numbers = build.cast(_parts(build, x, is_complex=bool(is_inverse or not is_half)), FLOAT)
    more = [] if length is None else [build.reshape(length, [1])]
    type, version = TYPES[is_inverse, is_half]
    shape: Shape = (*[UNKNOWN] * (rank - 1), 2)
    port = build.op(type, version, numbers, build.int64s(place[0] % rank), *more, shape=shape)
    return build.expand_dims(port, [rank - 1]) if type == "IRDFT" else port


def _parts(build: LayerBuilder, x: IrPort, *, is_complex: bool) -> IrPort:
    """The numbers with an imaginary part, or, if they are real, without the axis of parts."""
    assert x.shape is not None
    if not is_complex:
        return build.op("Squeeze", 1, x, build.int64s(-1), shape=x.shape[:-1])
    if x.shape[-1] == 2:
        return x
    zero = build.constant(np.zeros((), x.dtype))
    zeros = build.op("Broadcast", 3, zero, build.shape(x), shape=x.shape, mode="numpy")
    return build.concat([x, zeros], len(x.shape) - 1)
