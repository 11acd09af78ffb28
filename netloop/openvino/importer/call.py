"""What an operator's function is given, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from netloop.diagnostics import LayerError, did_you_mean, require
from netloop.formulas import FormulaBuilder
from netloop.graph.tensor import ITensor
from netloop.openvino.importer.model import XmlBody, XmlLayer, integer
from netloop.openvino.importer.weights import WeightsFile

Result = ITensor | Sequence[ITensor]
"""The outputs of a layer: one tensor, or a list of them."""
Operator = Callable[..., Result]
"""Makes layers of a layer: ``add(call, a, b)``, an argument for each input, None for one that no edge leads to."""

T = TypeVar("T")


class Inner(Protocol):
    """A graph inside a layer.

    Attributes:
        body: the graph, and how it is wired.
    """

    body: XmlBody

    def __call__(self, given: Mapping[int, ITensor]) -> Mapping[int, ITensor]:
        """Add its layers to the network.

        Args:
            given: what its Parameters stand for, by number.

        Returns:
            What its Results stand for, by number.
        """
        ...


@dataclass(frozen=True)
class Call:
    """A layer that is to become layers of a network.

    Attributes:
        layer: the layer.
        make: what adds layers.
        weights: the numbers of constants.
        inner: the graphs inside it, by name.
        depth: how many graphs are around it.
    """

    layer: XmlLayer
    make: FormulaBuilder
    weights: WeightsFile
    inner: Mapping[str, Inner] = field(default_factory=dict[str, Inner])
    depth: int = 0

    def body(self, name: str) -> Inner:
        """A graph inside the layer.

        Raises:
            LayerError: it has none of this name.
        """
        require(name in self.inner, f"the layer has no <{name}>")
        return self.inner[name]

    # ------------------------------------------------------------------ attributes, by name or by default

    def text(self, name: str, *default: str) -> str:
        """An attribute as a text."""
        return self._attribute(name, str.strip, *default)

    def number(self, name: str, *default: float) -> float:
        """An attribute as a number."""
        return self._attribute(name, float, *default)

    def int(self, name: str, *default: int) -> int:
        """An attribute as an integer."""
        return self._attribute(name, integer, *default)

    def flag(self, name: str, *default: bool) -> bool:
        """An attribute as a truth value."""
        return self._attribute(name, _truth, *default)

    def texts(self, name: str, *default: Sequence[str]) -> Sequence[str]:
        """An attribute as a list of texts."""
        return self._attribute(name, _split, *default)

    def numbers(self, name: str, *default: Sequence[float]) -> Sequence[float]:
        """An attribute as a list of numbers."""
        return self._attribute(name, lambda text: [float(each) for each in _split(text)], *default)

    def ints(self, name: str, *default: Sequence[int]) -> Sequence[int]:
        """An attribute as a list of integers."""
        return self._attribute(name, lambda text: [integer(each) for each in _split(text)], *default)

    def choice(self, name: str, choices: Mapping[str, T], *default: str) -> T:
        """What the text of an attribute stands for."""
        text = self._attribute(name, lambda text: text.strip().lower(), *default)
        known = ", ".join(map(repr, choices))
        require(text in choices, f"{name} is {text!r}, and none of {known}", fix=did_you_mean(text, choices))
        return choices[text]

    def _attribute(self, name: str, convert: Callable[[str], T], *default: T) -> T:
        text = self.layer.data.get(name)
        if text is None:
            require(bool(default), f"the layer has no attribute {name!r}, and {self.layer.operator} needs it")
            return default[0]
        try:
            return convert(text)
        except ValueError:
            raise LayerError(f"attribute {name!r} is {text[:40]!r}, and cannot be so") from None


def _truth(text: str) -> bool:
    found = TRUTHS.get(text.strip().lower())
    if found is None:
        raise ValueError(text)
    return found


TRUTHS = {"true": True, "1": True, "false": False, "0": False}


def _split(text: str) -> list[str]:
    return [each.strip() for each in text.split(",")] if text.strip() else []
