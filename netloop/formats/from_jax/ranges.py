"""Ranges of integers that follow from the equations: an index within bounds needs no layers that keep it there.

A loop counter, for example, is at least its start, and less than the number of iterations.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Range = tuple[int, int]
"""The least and the greatest number that an element may be."""


def _add(params: Any, a: Range, b: Range) -> Range:
    return a[0] + b[0], a[1] + b[1]


def _sub(params: Any, a: Range, b: Range) -> Range:
    return a[0] - b[1], a[1] - b[0]


def _mul(params: Any, a: Range, b: Range) -> Range:
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def _max(params: Any, a: Range, b: Range) -> Range:
    return max(a[0], b[0]), max(a[1], b[1])


def _min(params: Any, a: Range, b: Range) -> Range:
    return min(a[0], b[0]), min(a[1], b[1])


def _clamp(params: Any, low: Range, x: Range, high: Range) -> Range:
    return _min(params, _max(params, x, low), high)


def _rem(params: Any, a: Range, b: Range) -> Range | None:
    return (0, min(a[1], b[1] - 1)) if a[0] >= 0 and b[0] > 0 else None


def _same(params: Any, a: Range, *others: Range) -> Range:
    return a


def _any(params: Any, *entry: Range) -> Range:
    return min(low for low, _ in entry), max(high for _, high in entry)


def _selected(params: Any, which: Range, *cases: Range) -> Range:
    return _any(params, *cases)


FORMULAS: dict[str, Callable[..., Range | None]] = {
    "add": _add, "sub": _sub, "mul": _mul, "max": _max, "min": _min, "clamp": _clamp, "rem": _rem,
    "select_n": _selected, "concatenate": _any, "convert_element_type": _same, "broadcast_in_dim": _same,
    "reshape": _same, "squeeze": _same, "transpose": _same, "slice": _same, "rev": _same, "copy": _same,
    "reduce_max": _same, "reduce_min": _same, "cummax": _same, "cummin": _same,
}  # fmt: skip
"""The range of a result, from the parameters and the ranges of the operands."""


def range_of_result(name: str, params: Any, operands: Sequence[Any], avals: Sequence[Any], result: Any) -> Range | None:
    """The range of the result of a primitive, given the ranges of its operands; None if it is not known."""
    if result.dtype.kind not in "iu":
        return None
    if name in ("argmax", "argmin"):
        return _places(avals[0].shape[params["axes"][0]])
    if name == "iota":
        return _places(params["shape"][params["dimension"]])
    if name in ("gather", "dynamic_slice"):
        operands = operands[:1]  # within bounds, or filled
        return operands[0] if name == "dynamic_slice" else None
    formula = FORMULAS.get(name)
    if formula is None or any(operand is None for operand in operands):
        return None
    range_, limits = formula(params, *operands), np.iinfo(result.dtype)
    return range_ if range_ is not None and limits.min <= range_[0] and range_[1] <= limits.max else None


def _places(length: Any) -> Range | None:
    return (0, max(length - 1, 0)) if isinstance(length, int | np.integer) else None


def comparison(name: str, a: Range | None, b: Range | None) -> bool | None:
    """The result of a comparison that the ranges of its operands decide; else None."""
    if a is None or b is None:
        return None
    swapped = {"gt": "lt", "le": "ge"}
    if name in swapped:
        name, a, b = swapped[name], b, a
    if name not in ("lt", "ge"):
        return None
    if a[1] < b[0]:
        return name == "lt"
    return name == "ge" if a[0] >= b[1] else None
