"""The registry of the functions that translate ONNX nodes to OpenVINO layers."""

from collections.abc import Callable
from typing import Any

from netloop.formats.shared.operator_table import OperatorTable

EXPORTERS = OperatorTable[str, Callable[..., Any]]()
"""Each takes a ``LayerBuilder``, the node and a port per input (None if left out), and returns a port per output."""

exports = EXPORTERS.register
