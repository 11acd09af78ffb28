"""Layers that go along axes: reduce, cumulative, softmax, top-k."""

from netloop.enums import CumulativeOperation, DataType, LayerType, ReduceOperation, TopKOperation
from netloop.graph.layer import Operation, layer


@layer(LayerType.REDUCE, "Reduce")
class IReduceLayer(Operation):
    """."""

    op: ReduceOperation
    axes: int
    keep_dims: bool


@layer(LayerType.CUMULATIVE, "Cumulative")
class ICumulativeLayer(Operation):
    """."""

    REQUIRED_INPUTS = 2
    SHAPE_INPUTS = frozenset({1})

    op: CumulativeOperation
    exclusive: bool
    reverse: bool


@layer(LayerType.SOFTMAX, "Softmax")
class ISoftMaxLayer(Operation):
    """."""

    axes: int


@layer(LayerType.TOPK, "TopK")
class ITopKLayer(Operation):
    """."""

    NUM_OUTPUTS = 2
    MAX_INPUTS = 2
    SHAPE_INPUTS = frozenset({1})
    INPUT_OF = {"k": 1}

    op: TopKOperation
    k: int
    axes: int
    indices_type: DataType = DataType.INT32
