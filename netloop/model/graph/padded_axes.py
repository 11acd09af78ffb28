"""Padded axes: how a layer says that it can run on tensors that are longer than what they mean.

The first elements of a padded axis are those of the tensor, and what follows them is garbage, also NaN.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

Axes = frozenset[int]
NO_AXES: Axes = frozenset()

Lengths = Sequence[Mapping[int, Any]]
"""The lengths without padding of the padded axes of each operand, then of each output, by axis: numbers of a call."""


class Neutral(NamedTuple):
    """The number that the padding of an operand has to be, so that it changes no result.

    Attributes:
        axes: the axes behind whose ends elements are replaced.
        value: the number.
    """

    axes: Axes
    value: Any


Neutrals = Mapping[int, Neutral]
"""The neutral numbers of a layer: of those of its operands that need one, by position."""
NO_NEUTRALS: Neutrals = {}


def neutral(operand: int, axes: Axes, value: Any = 0) -> Neutrals:
    """A neutral number for a single operand along some axes, of which there may be none."""
    return {operand: Neutral(axes, value)} if axes else NO_NEUTRALS


def filled(x: Any, neutral: Neutral, lengths: Mapping[int, Any]) -> Any:
    """An array with a number behind the ends of some axes, in JAX."""
    for axis in sorted(neutral.axes):
        within = jnp.arange(x.shape[axis]) < lengths[axis]
        shape = [-1 if index == axis else 1 for index in range(x.ndim)]
        x = jnp.where(within.reshape(shape), x, np.asarray(neutral.value, x.dtype))
    return x


def length_along(x: Any, axis: int, lengths: Mapping[int, Any]) -> Any:
    """The length of an axis without padding."""
    return lengths.get(axis, x.shape[axis])


def lengths_of(operand: int, lengths: Lengths) -> Mapping[int, Any]:
    """The lengths without padding of the padded axes of an operand, of which there may be none."""
    return lengths[operand] if lengths else {}
