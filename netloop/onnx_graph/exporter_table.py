"""The registry of the functions that translate layers to ONNX nodes."""

from collections.abc import Callable
from typing import Any

from netloop.graph.layer import ILayer

LayerExporter = Callable[..., Any]
"""Takes the layer, a ``NodeBuilder`` and a value for each input (None if left out); returns a value for each output."""

EXPORTERS: dict[type[ILayer], LayerExporter] = {}


def exports(kind: type[ILayer]) -> Callable[[LayerExporter], LayerExporter]:
    """Register the exporter of a layer kind."""

    def register(exporter: LayerExporter) -> LayerExporter:
        assert kind not in EXPORTERS, f"{kind.__name__} has an exporter already"
        EXPORTERS[kind] = exporter
        return exporter

    return register
