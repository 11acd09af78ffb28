"""Slice, in its five modes."""

from netloop.dims import Dims
from netloop.enums import LayerType, SampleMode
from netloop.graph.layer import Operation, layer


@layer(LayerType.SLICE, "Slice")
class ISliceLayer(Operation):
    """."""

    MAX_INPUTS = 6
    SHAPE_INPUTS = frozenset({2, 5})
    INPUT_OF = {"start": 1, "shape": 2, "stride": 3, "axes": 5}

    start: Dims
    shape: Dims
    stride: Dims
    mode: SampleMode = SampleMode.STRICT_BOUNDS
    axes: Dims | None = None
