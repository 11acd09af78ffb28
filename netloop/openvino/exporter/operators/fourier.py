"""The discrete Fourier transform."""

from __future__ import annotations

import numpy as np

from netloop.diagnostics import require
from netloop.onnx_graph.graph import Node
from netloop.onnx_graph.node_builder import FLOAT
from netloop.openvino.exporter.layer_builder import LayerBuilder
from netloop.openvino.exporter.net import Port
from netloop.openvino.exporter.operator_table import says
from netloop.openvino.exporter.operators.arrange import joined
from netloop.types import UNKNOWN, Shape

TYPES = {(0, 0): ("DFT", 7), (1, 0): ("IDFT", 7), (0, 1): ("RDFT", 9), (1, 1): ("IRDFT", 9)}
"""The operators by whether they are inverse, and whether one side is left out."""


@says("DFT")
def transform(build: LayerBuilder, node: Node, x: Port, length: Port | None = None, axis: Port | None = None) -> Port:
    """Along one axis, of numbers whose parts are along the last axis."""
    given = node.attributes
    is_inverse, is_half = given.get("inverse", 0), given.get("onesided", 0)
    require(x.shape is not None and UNKNOWN not in x.shape[-1:], "whether its numbers are complex is not known")
    rank = len(x.shape or ())
    place = -2 if axis is None else (build.known(axis) or [None])[0]
    require(place is not None, "its axis is known only in the run")
    numbers = build.cast(_parts(build, x, is_complex=bool(is_inverse or not is_half)), FLOAT)
    more = [] if length is None else [build.reshape(length, build.ints(1))]
    type, version = TYPES[is_inverse, is_half]
    shape: Shape = (*[UNKNOWN] * (rank - 1), 2)
    made = build.op(type, version, numbers, build.ints((place or 0) % rank), *more, shape=shape)
    return build.unsqueeze(made, rank - 1) if type == "IRDFT" else made


def _parts(build: LayerBuilder, x: Port, *, is_complex: bool) -> Port:
    """Numbers with an imaginary part, or without that axis."""
    assert x.shape is not None
    if not is_complex:
        return build.op("Squeeze", 1, x, build.ints(-1), shape=x.shape[:-1])
    if x.shape[-1] == 2:
        return x
    zeros = build.op(
        "Broadcast", 3, build.constant(np.zeros((), x.dtype)), build.shape_of(x), shape=x.shape, mode="numpy"
    )
    return joined(build, [x, zeros], len(x.shape) - 1)
