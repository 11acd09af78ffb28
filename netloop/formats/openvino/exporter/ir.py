"""The intermediate representation of an OpenVINO model: the content of its XML, without the numbers of constants."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from netloop.values.types import Array, Shape


@dataclass(eq=False)
class IrPort:
    """An output of a layer, with the names of its tensor.

    Attributes:
        shape: its dims, with -1 for unknown ones; None if not even the rank is known.
    """

    dtype: np.dtype[Any]
    shape: Shape | None = None
    names: tuple[str, ...] = ()


@dataclass(eq=False)
class IrLayer:
    """An operation with the ports that it reads and computes.

    Attributes:
        version: the operator set that its version comes from.
        data: its attributes.
        name: the name that it should get; the document makes it unique.
        array: the numbers of a ``Const``.
    """

    type: str
    version: str
    inputs: list[IrPort]
    outputs: list[IrPort]
    data: dict[str, Any]
    name: str = ""
    array: Array | None = None
    bodies: list[IrBody] = field(default_factory=list["IrBody"])


@dataclass(eq=False)
class IrNet:
    """Layers in order of execution."""

    layers: list[IrLayer] = field(default_factory=list[IrLayer])

    def add(self, layer: IrLayer) -> IrLayer:
        """Add a layer at the end."""
        self.layers.append(layer)
        return layer


OUTSIDE = -1
"""The port number of a connection that has a purpose instead of a port."""


@dataclass(frozen=True)
class IrWire:
    """A connection of a port of a layer with a Parameter or Result of a net inside of it.

    Attributes:
        port: the position among the inputs of the layer, or among its outputs.
        layer: the Parameter or Result.
        axis: the axis along which the values of all iterations are joined; None for the last value.
        purpose: ``current_iteration`` or ``execution_condition``, for a connection without a port.
    """

    port: int
    layer: IrLayer
    axis: int | None = None
    purpose: str = ""


@dataclass(eq=False)
class IrBody:
    """A net inside of a layer.

    Attributes:
        tag: its XML tag: ``body``, ``then_body`` or ``else_body``.
        inputs, outputs: the connections of its Parameters and of its Results.
        back_edges: the Results whose values become Parameters of the next iteration.
    """

    tag: str
    net: IrNet
    inputs: list[IrWire]
    outputs: list[IrWire]
    back_edges: list[tuple[IrLayer, IrLayer]] = field(default_factory=list[tuple[IrLayer, IrLayer]])
