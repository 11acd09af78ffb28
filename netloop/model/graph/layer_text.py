"""Layers and tensors as short texts: types and shapes, and never arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from netloop.values.diagnostics import Finding, plain, quoted
from netloop.values.diagnostics.quoting import printable, shortened
from netloop.values.string_arrays import type_name

if TYPE_CHECKING:
    from netloop.model.graph.layer import ILayer
    from netloop.model.graph.tensor import ITensor

LONGEST_VALUE = 120
"""The longest text of an attribute, in characters."""
MOST_INPUTS = 12
"""The most tensors that the line of a layer names on each side."""


def tensor_text(tensor: ITensor | None) -> str:
    """A tensor by its name; by ``%3``, the number of its layer, if it has a default name; ``-`` if it is left out."""
    if tensor is None:
        return "-"
    producer = tensor.producer
    if producer is None or not tensor.name.startswith("(Unnamed Layer* "):
        return plain(tensor.name)
    return f"%{producer.index}" + f".{tensor.position}" * (len(producer.outputs) > 1)


def type_text(tensor: ITensor) -> str:
    """The type of a tensor, such as ``float32[3,-1]``; ``?`` if it has none."""
    type_ = tensor.types.of(tensor)
    return "?" if isinstance(type_, Finding) else str(type_)


def kind_text(layer: ILayer) -> str:
    """The kind of a layer, with its operation or window, such as ``ElementWise SUM`` or ``Convolution 3x3 s2``."""
    return f"{type(layer).__name__.removeprefix('I').removesuffix('Layer')} {layer.detail}".rstrip()


def value_text(value: Any) -> str:
    """The value of an attribute; of an array the type and shape."""
    if isinstance(value, np.ndarray):
        return f"{type_name(value.dtype)}[{','.join(map(str, value.shape))}]"
    if isinstance(value, str | bytes):
        return quoted(value)
    return shortened(printable(repr(value)), LONGEST_VALUE)


def layer_text(layer: ILayer) -> str:
    """A line: number, kind, name, inputs, and outputs with their types."""
    name = "" if layer.name.startswith("(Unnamed Layer* ") else f" {quoted(layer.name)}"
    outputs = (f"{tensor_text(tensor)}: {type_text(tensor)}" for tensor in layer.outputs[: MOST_INPUTS + 1])
    read = _listed(map(tensor_text, layer.inputs[: MOST_INPUTS + 1]), len(layer.inputs))
    return f"%{layer.index} {kind_text(layer)}{name} ({read}) -> {_listed(outputs, len(layer.outputs)) or 'nothing'}"


def _listed(texts: Iterable[str], count: int) -> str:
    shown = list(texts)
    return ", ".join(shown if count <= MOST_INPUTS else [*shown[:MOST_INPUTS], f"... {count} in all"])
