"""What makes OpenVINO's layers of each operator of ONNX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Operator = Callable[..., Any]
"""Takes a ``LayerBuilder``, the node and a port for each input, None for one left out; gives a port for each output."""

OPERATORS: dict[str, Operator] = {}


def says(name: str) -> Callable[[Operator], Operator]:
    """Enter what makes layers of an operator."""

    def enter(function: Operator) -> Operator:
        assert name not in OPERATORS, f"{name} is entered already"
        OPERATORS[name] = function
        return function

    return enter
