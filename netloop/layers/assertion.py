"""Assertion."""

from netloop.enums import LayerType
from netloop.graph.layer import ILayer, layer


@layer(LayerType.ASSERTION, "Assertion")
class IAssertionLayer(ILayer):
    """."""

    NUM_OUTPUTS = 0

    message: str
