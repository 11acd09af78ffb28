"""The rule by which outputs of netloop and onnxruntime agree: ``RULE``."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from ml_dtypes import finfo

FLOOR = {"float16": 2.0**-7, "bfloat16": 2.0**-4, "float32": 1e-5, "float64": 1e-9}
"""The errors that always agree: 8 units in the last place of the 16-bit types, 84 of float32."""
FACTOR, MOST = 4, 0.05

RULE = f"""- The error of a floating-point output is the largest absolute difference over the largest absolute value
  that onnxruntime computes for this output, among finite elements. Elements that are not finite must be equal.
- The noise is what onnxruntime's own outputs vary by: the largest error of three of its runs, relative to its run
  without the optimizer. One is with the whole optimizer; in the other two, each element of a floating-point weight
  that is not an integer is changed by -1, 0 or 1 unit in the last place, at random.
- An output agrees if its type and shape are equal, and its error is at most {FACTOR} times the noise and {MOST},
  or at most {", ".join(f"{number:.0e} for {kind}" for kind, number in FLOOR.items())}.
- The error of any other output is the share of elements that differ. It agrees if it is at most the noise and {MOST}.
- A model agrees if all outputs agree at all sizes. The tables give the largest error and noise of all outputs.
"""


def leaves(value: Any) -> list[np.ndarray]:
    """The arrays of an output, which may be a sequence or a map. The float32 of maps are numbers of Python."""
    if isinstance(value, dict):
        return [*leaves(list(value.keys())), *leaves(list(value.values()))]
    if isinstance(value, list) and value and (isinstance(value[0], dict | list) or np.ndim(value[0])):
        return [leaf for element in value for leaf in leaves(element)]
    is_of_map = isinstance(value, list) and value and isinstance(value[0], float)
    array = np.asarray(value, np.float32 if is_of_map else None)
    return [array.astype(str) if array.dtype.kind in "OTS" else array]


def is_float(array: np.ndarray) -> bool:
    return array.dtype.name in FLOOR


def error(found: np.ndarray, expected: np.ndarray) -> float:
    """The error of one output; infinite if the type or the shape differs."""
    kinds = {found.dtype.kind, expected.dtype.kind}
    if found.shape != expected.shape or (found.dtype != expected.dtype and kinds != {"U"}):
        return np.inf
    if not expected.size:
        return 0.0
    if not is_float(expected):
        return float(np.mean(found != expected))
    found, expected = found.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(expected)
    if not np.array_equal(found[~finite], expected[~finite], equal_nan=True) or not np.isfinite(found[finite]).all():
        return np.inf
    largest = np.abs(expected[finite]).max(initial=0)
    difference = np.abs(found - expected)[finite].max(initial=0)
    return float(difference / largest if largest else difference)


def errors(found: Iterable[Any], expected: Iterable[Any]) -> list[float]:
    """The error of each output; one infinite error if their numbers differ."""
    mine, theirs = ([leaf for tensor in outputs for leaf in leaves(tensor)] for outputs in (found, expected))
    if len(mine) != len(theirs):
        return [np.inf]
    return [error(*entry) for entry in zip(mine, theirs, strict=True)]


def agrees(found: float, noise: float, expected: np.ndarray) -> bool:
    """Whether an output with this error agrees, by the rule."""
    allowed = FACTOR * noise if is_float(expected) else noise
    return found <= max(FLOOR.get(expected.dtype.name, 0.0), min(allowed, MOST))


def largest_noise(reference: Sequence[Any], runs: Iterable[Sequence[Any]]) -> list[float]:
    """The noise of each output. A run whose outputs have other shapes says nothing."""
    noise = [0.0] * sum(len(leaves(value)) for value in reference)
    for run in runs:
        found = errors(run, reference)
        if len(found) == len(noise):
            noise = [
                max(before, number) if np.isfinite(number) else before
                for before, number in zip(noise, found, strict=True)
            ]
    return noise


def changed(array: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """A floating-point array with each element that is not an integer changed by -1, 0 or 1 unit in the last place."""
    if not is_float(array):
        return array
    steps = chance.integers(-1, 2, array.shape) * (array != np.trunc(array))
    made = array.astype(np.longdouble) * (1 + float(finfo(array.dtype).eps) * steps)
    return made.astype(array.dtype)
