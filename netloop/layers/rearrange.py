"""Layers that move elements about: shuffle, squeeze, unsqueeze, concatenation."""

from netloop.dims import Dims, Permutation
from netloop.enums import LayerType
from netloop.graph.layer import Operation, layer


@layer(LayerType.SHUFFLE, "Shuffle")
class IShuffleLayer(Operation):
    """."""

    MAX_INPUTS = 2
    SHAPE_INPUTS = frozenset({1})
    INPUT_OF = {"reshape_dims": 1}

    first_transpose: Permutation | None = None
    reshape_dims: Dims | None = None
    second_transpose: Permutation | None = None
    zero_is_placeholder: bool = True


@layer(LayerType.SQUEEZE, "Squeeze")
class ISqueezeLayer(Operation):
    """."""

    MAX_INPUTS = 2
    SHAPE_INPUTS = frozenset({1})


@layer(LayerType.UNSQUEEZE, "Unsqueeze")
class IUnsqueezeLayer(Operation):
    """."""

    REQUIRED_INPUTS = 2
    SHAPE_INPUTS = frozenset({1})


@layer(LayerType.CONCATENATION, "Concatenation")
class IConcatenationLayer(Operation):
    """."""

    axis: int
