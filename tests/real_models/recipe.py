"""Recipes of models: each writes one ONNX file, with inputs of one or two sizes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Inputs = dict[str, np.ndarray]
Sizes = list[Inputs]
"""The inputs of a model by name, for each size that it is called with."""


class Recipe(NamedTuple):
    """How one model is made.

    Attributes:
        name: the name of its file.
        tool: what writes it.
        write: writes the model to a path and returns its inputs.
        base: the name of the model that it is made from, if any.
    """

    name: str
    tool: str
    write: Callable[[Path], Sizes]
    base: str = ""


class Recipes(dict[str, Recipe]):
    """The recipes of one source, by name."""

    def add(self, name: str, tool: str, write: Callable[[Path], Sizes], base: str = "") -> None:
        """Add one.

        Raises:
            ValueError: there is one of this name.
        """
        if name in self:
            raise ValueError(f"two models are called {name}")
        self[name] = Recipe(name, tool, write, base)


def save_inputs(path: Path, sizes: Sizes) -> None:
    """Write the inputs next to the model."""
    for index, inputs in enumerate(sizes):
        np.savez(path.with_suffix(f".{index}.npz"), **_savable(inputs))


def load_inputs(path: Path) -> Sizes:
    """The inputs next to a model."""
    files = sorted(path.parent.glob(f"{path.stem}.[0-9].npz"))
    return [dict(np.load(file)) for file in files]


def _savable(inputs: Inputs) -> dict[str, Any]:
    """Strings as fixed-width ones, which need no pickle."""
    return {name: array.astype(str) if array.dtype == object else array for name, array in inputs.items()}
