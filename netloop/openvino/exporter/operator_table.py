"""The registry of the functions that translate ONNX nodes to OpenVINO layers."""

from collections.abc import Callable
from typing import Any

NodeExporter = Callable[..., Any]
"""Takes a ``LayerBuilder``, the node and a port for each input (None if left out); returns a port for each output."""

EXPORTERS: dict[str, NodeExporter] = {}


def exports(operator: str) -> Callable[[NodeExporter], NodeExporter]:
    """Register the exporter of an operator."""

    def register(exporter: NodeExporter) -> NodeExporter:
        assert operator not in EXPORTERS, f"{operator} has an exporter already"
        EXPORTERS[operator] = exporter
        return exporter

    return register
