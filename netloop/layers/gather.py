"""Layers that read and write by index: gather, scatter, one-hot."""

from netloop.enums import GatherMode, LayerType, ScatterMode
from netloop.graph.layer import Operation, layer


@layer(LayerType.GATHER, "Gather")
class IGatherLayer(Operation):
    """."""

    REQUIRED_INPUTS = 2

    mode: GatherMode = GatherMode.DEFAULT
    axis: int = 0
    num_elementwise_dims: int = 0


@layer(LayerType.SCATTER, "Scatter")
class IScatterLayer(Operation):
    """."""

    REQUIRED_INPUTS = 3

    mode: ScatterMode
    axis: int = 0


@layer(LayerType.ONE_HOT, "OneHot")
class IOneHotLayer(Operation):
    """."""

    REQUIRED_INPUTS = 3
    SHAPE_INPUTS = frozenset({2})

    axis: int
