"""Nets of OpenVINO's layers while they are made: what an XML document says, without its numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from netloop.types import Array, Shape


@dataclass(eq=False)
class Port:
    """What a layer makes.

    Attributes:
        dtype: the element type.
        shape: its lengths, with -1 for those that only a run tells; None if nothing is known of them.
        names: what the tensor is called.
    """

    dtype: np.dtype[Any]
    shape: Shape | None = None
    names: tuple[str, ...] = ()


@dataclass(eq=False)
class Layer:
    """An operator with its inputs and outputs.

    Attributes:
        type: what it is called in OpenVINO.
        version: the operator set that its version comes from.
        inputs: what it reads.
        outputs: what it makes.
        data: its attributes.
        name: what it is to be called.
        array: the numbers of a ``Const``.
        bodies: the nets inside of it.
    """

    type: str
    version: str
    inputs: list[Port]
    outputs: list[Port]
    data: dict[str, Any]
    name: str = ""
    array: Array | None = None
    bodies: list[Body] = field(default_factory=list["Body"])


@dataclass(eq=False)
class Net:
    """Layers in running order."""

    layers: list[Layer] = field(default_factory=list[Layer])

    def add(self, layer: Layer) -> Layer:
        """Add a layer at the end."""
        self.layers.append(layer)
        return layer


OUTSIDE = -1
"""The port of what goes in or out by no port."""


@dataclass(frozen=True)
class Wire:
    """What connects a port of a layer with a Parameter or Result of a net inside of it.

    Attributes:
        port: the position among the inputs of the layer, or among its outputs.
        layer: the Parameter or Result.
        axis: the axis along which the values of all trips are joined; None for the last value.
        purpose: what it is for, where no port tells it.
    """

    port: int
    layer: Layer
    axis: int | None = None
    purpose: str = ""


@dataclass(eq=False)
class Body:
    """A net inside of a layer.

    Attributes:
        tag: which it is: ``body``, ``then_body`` or ``else_body``.
        net: the net.
        inputs: how its Parameters are connected.
        outputs: how its Results are connected.
        back_edges: the Results whose values Parameters have in the next trip.
    """

    tag: str
    net: Net
    inputs: list[Wire]
    outputs: list[Wire]
    back_edges: list[tuple[Layer, Layer]] = field(default_factory=list[tuple[Layer, Layer]])
