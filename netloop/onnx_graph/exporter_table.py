"""What makes ONNX operators of each kind of layer."""

from collections.abc import Callable
from typing import Any

from netloop.graph.layer import ILayer

Exporter = Callable[..., Any]
"""Takes the layer, a ``NodeBuilder`` and a value for each input (None if left out); returns a value for each output."""

EXPORTERS: dict[type[ILayer], Exporter] = {}


def exports(kind: type[ILayer]) -> Callable[[Exporter], Exporter]:
    """Enter the exporter of a kind."""

    def enter(exporter: Exporter) -> Exporter:
        assert kind not in EXPORTERS, f"{kind.__name__} has an exporter already"
        EXPORTERS[kind] = exporter
        return exporter

    return enter
