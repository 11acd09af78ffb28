"""Layers that make tensors out of nothing but attributes, shapes and sizes: constant, fill, shape."""

from netloop.dims import Dims
from netloop.enums import DataType, FillOperation, LayerType
from netloop.graph.layer import Operation, layer
from netloop.types import Array


@layer(LayerType.CONSTANT, "Constant")
class IConstantLayer(Operation):
    """."""

    REQUIRED_INPUTS = 0

    shape: Dims
    weights: Array


@layer(LayerType.FILL, "Fill")
class IFillLayer(Operation):
    """."""

    REQUIRED_INPUTS = 0
    MAX_INPUTS = 3
    SHAPE_INPUTS = frozenset({0})
    INPUT_OF = {"shape": 0, "alpha": 1, "beta": 2}

    shape: Dims
    operation: FillOperation
    to_type: DataType = DataType.FLOAT
    alpha: float = 0.0
    beta: float = 1.0


@layer(LayerType.SHAPE, "Shape")
class IShapeLayer(Operation):
    """."""
