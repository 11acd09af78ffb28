"""The registry of the functions that translate layers to ONNX nodes."""

from collections.abc import Callable
from typing import Any

from netloop.formats.shared.operator_table import OperatorTable
from netloop.model.graph.layer import ILayer

EXPORTERS = OperatorTable[type[ILayer], Callable[..., Any]]()
"""Each takes the layer, a ``NodeBuilder`` and a value per input (None if left out), and returns a value per output."""

exports = EXPORTERS.register
