"""Values of which some elements are known before a network runs: the others are masked.

``Shape`` of ``float32[-1, 12]`` is such a value. What a layer makes of one is computed by its own ``evaluate``, so that
no kind of layer is defined a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from netloop.values.types import Array, MaskedArray

Masked = Sequence[MaskedArray | None]
"""The inputs of a layer; None for one that is left out."""
Evaluate = Callable[..., Any]
"""``Operation.evaluate`` of a layer."""


def elementwise(evaluate: Evaluate, inputs: Masked) -> MaskedArray | None:
    """Return the output of an element-wise layer: an element is known where those of all inputs are."""
    unknown = reduce(np.logical_or, [_mask(array) for array in inputs])
    return None if unknown.all() else masked(evaluate(*map(_data, inputs)), unknown)


def moved(evaluate: Evaluate, inputs: Masked, count: int) -> MaskedArray | None:
    """Return the output of a layer that moves elements of its first ``count`` inputs, to places that the others say."""
    masks, others = [_mask(array) for array in inputs[:count]], inputs[count:]
    if all(mask.all() for mask in masks) or any(map(np.ma.is_masked, others)):
        return None
    unknown = np.asarray(evaluate(*masks, *map(_data, others)), np.bool_)  # masks move as the elements do
    return masked(evaluate(*map(_data, inputs)), unknown)


def selected(evaluate: Evaluate, inputs: Masked) -> MaskedArray | None:
    """Return the output of a selection; elements that a known condition does not select may be unknown."""
    condition, *unknown = map(_mask, inputs)
    return masked(evaluate(*map(_data, inputs)), condition | np.where(_data(inputs[0]), *unknown))


def masked(elements: Any, unknown: Array) -> MaskedArray:
    """Return an array with some elements masked."""
    return np.ma.MaskedArray(elements, unknown)


def _data(array: MaskedArray | None) -> Any:
    return None if array is None else array.data


def _mask(array: MaskedArray | None) -> Array:
    return np.zeros((), np.bool_) if array is None else np.ma.getmaskarray(array)
