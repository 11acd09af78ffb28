"""The arguments of operator functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from netloop.formats.openvino.importer.model import XmlBody, XmlLayer, integer
from netloop.formats.openvino.importer.weights import WeightsFile, element_type
from netloop.formats.shared.alternatives import Value, merged
from netloop.formats.shared.assumptions import Assumptions
from netloop.formats.shared.import_errors import present
from netloop.formats.shared.importer import Maybe as Maybe
from netloop.formats.shared.importer import choose
from netloop.model.formulas import FormulaBuilder
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import LayerError, quoted, require
from netloop.values.types import normal_axis

T = TypeVar("T")

Tensors = Mapping[int, ITensor]
"""The tensors of Parameters or Results, by their numbers."""


@dataclass(frozen=True)
class Body:
    """A graph inside a layer, such as the body of a loop.

    Attributes:
        xml: the graph and its wiring.
        values: adds its layers to the network; takes the tensors of its Parameters and returns the values of its
            Results, each of which may be alternatives.
    """

    xml: XmlBody
    values: Callable[[Tensors], Mapping[int, Value]]

    def __call__(self, parameters: Tensors) -> Tensors:
        """Add the layers of the graph to the network, given its Parameters; return its Results as tensors."""
        values = {id: merged(value) for id, value in self.values(parameters).items()}
        return {id: value for id, value in values.items() if isinstance(value, ITensor)}


@dataclass(frozen=True)
class LayerCall:
    """A layer of a model to translate into layers of a network: the first argument of an operator function.

    Attributes:
        layer: the layer.
        make: the builder of its layers.
        weights: the file of the constants.
        bodies: the graphs inside it, by name.
        depth: the number of graphs around it.
        assumptions: the branches that the import assumes to be taken.
    """

    layer: XmlLayer
    make: FormulaBuilder
    weights: WeightsFile
    assumptions: Assumptions
    bodies: Mapping[str, Body] = field(default_factory=dict[str, Body])
    depth: int = 0

    def body(self, name: str) -> Body:
        """The graph of a name inside the layer.

        Raises:
            LayerError: it has none of this name.
        """
        require(name in self.bodies, f"the layer has no <{name}>")
        return self.bodies[name]

    # ------------------------------------------------------------------ inputs that must be constants

    def known_ints(self, x: ITensor, what: str) -> list[int]:
        """The value of an input that must be a constant."""
        why = "the shape of the output would be unknown"
        return present(self.make.ints(x), f"the {what} are not constant", why)

    def known_axes(self, axes: ITensor, rank: int) -> list[int]:
        """The axes that an input names, counted from the front."""
        return [normal_axis(axis, rank) for axis in self.known_ints(axes, "axes")]

    def known_axis(self, axis: ITensor, rank: int) -> int:
        """The single axis that an input names, counted from the front."""
        count = len(self.known_ints(axis, "axes"))
        require(count == 1, f"there are {count} axes, but must be one")
        return self.known_axes(axis, rank)[0]

    # ------------------------------------------------------------------ attributes, with or without a default

    def text(self, name: str, *default: str) -> str:
        """An attribute as a string."""
        return self._attribute(name, str.strip, *default)

    def number(self, name: str, *default: float) -> float:
        """An attribute as a number."""
        return self._attribute(name, float, *default)

    def int(self, name: str, *default: int) -> int:
        """An attribute as an integer."""
        return self._attribute(name, integer, *default)

    def axis(self, x: ITensor, name: str = "axis", *default: int) -> int:
        """The axis of a tensor that an attribute names, counted from the front."""
        return normal_axis(self.int(name, *default), x.type.rank)

    def element_type(self, name: str, *default: str) -> np.dtype[Any]:
        """The numpy type that an attribute names."""
        return element_type(self.text(name, *default))

    def flag(self, name: str, *default: bool) -> bool:
        """An attribute as a bool."""
        return self._attribute(name, _truth, *default)

    def texts(self, name: str, *default: Sequence[str]) -> Sequence[str]:
        """An attribute as a list of strings."""
        return self._attribute(name, _split, *default)

    def numbers(self, name: str, *default: Sequence[float]) -> Sequence[float]:
        """An attribute as a list of numbers."""
        return self._attribute(name, lambda text: [float(name) for name in _split(text)], *default)

    def ints(self, name: str, *default: Sequence[int]) -> Sequence[int]:
        """An attribute as a list of integers."""
        return self._attribute(name, lambda text: [integer(name) for name in _split(text)], *default)

    def choice(self, name: str, choices: Mapping[str, T], *default: str) -> T:
        """The choice for the word that an attribute has, in upper or lower case."""
        return choose(name, self._attribute(name, lambda text: text.strip().lower(), *default), choices)

    def _attribute(self, name: str, convert: Callable[[str], T], *default: T) -> T:
        text = self.layer.data.get(name)
        if text is None:
            require(bool(default), f"the layer has no attribute {quoted(name)}, and {self.layer.operator} needs it")
            return default[0]
        try:
            return convert(text)
        except ValueError:
            raise LayerError(f"attribute {quoted(name)} is {quoted(text)}, which is no valid value") from None


def _truth(text: str) -> bool:
    flag = TRUTHS.get(text.strip().lower())
    if flag is None:
        raise ValueError(text)
    return flag


TRUTHS = {"true": True, "1": True, "false": False, "0": False}


def _split(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")] if text.strip() else []
