"""How well the outputs of two runtimes agree."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from netloop.api.engine import ICudaEngine
from netloop.api.tolerance import Limits, Numbers, Tolerance, Tolerances
from netloop.compiler.product_precision import FLOAT32
from netloop.values.string_arrays import string_array, type_name
from netloop.values.types import Array


@dataclass(frozen=True)
class Agreement:
    """One array of an output in two runtimes.

    Attributes:
        name: the name of the output, with an index for an array of a sequence or a map.
        elements: the number of elements.
        differing: how many of them differ by more than the tolerances.
        absolute: the largest absolute difference of finite numbers.
        relative: the largest difference of finite numbers, relative to the expected one.
        worst: the largest difference beyond the tolerances: the index, the expected number or shape, and the other;
            None if there is none.
        atol: the absolute tolerance; 0 for types that are compared exactly.
        caution: a reason why agreement says little; empty if there is none.
        products: the type to which the engine rounds the operands of the float32 products that the output follows from;
            float32 if there are none, or nothing is rounded.
    """

    name: str
    elements: int
    differing: int
    absolute: float
    relative: float
    worst: tuple[tuple[int, ...], Any, Any] | None
    atol: float = 0.0
    caution: str = ""
    products: str = FLOAT32.name

    @property
    def agrees(self) -> bool:
        """Whether everything is within the tolerances."""
        return self.worst is None

    def as_json(self) -> dict[str, Any]:
        """The agreement as a dict for JSON; infinities and NaN are texts."""
        worst = None
        if self.worst is not None:
            index, expected, got = self.worst
            worst = {"index": [*index], "expected": str(expected), "got": str(got)}
        numbers = {name: getattr(self, name) for name in ("absolute", "relative", "atol")}
        shown = {name: number if np.isfinite(number) else str(number) for name, number in numbers.items()}
        return {"name": self.name, "agrees": self.agrees, "elements": self.elements, "differing": self.differing,
                **shown, "worst": worst, "caution": self.caution, "products": self.products}  # fmt: skip

    def __str__(self) -> str:
        errors = f"largest difference {self.absolute:.3g}, relative {self.relative:.3g}"
        if self.products != FLOAT32.name:
            errors += f", with float32 products of {self.products}"
        if self.worst is None:
            return f"{self.name}: agrees, {errors}" + (self.caution and f"; {self.caution}")
        index, expected, got = self.worst
        at = f" at {list(index)}" if index else ""
        counted = f"{self.differing} of {self.elements} elements, {errors}; " if self.differing else ""
        return f"{self.name}: differs, {counted}{got} and {expected}{at}"


def agreements(
    got: Mapping[str, Any],
    expected: Mapping[str, Any],
    rtol: float | None = None,
    atol: float | None = None,
    *,
    engine: ICudaEngine | None = None,
) -> list[Agreement]:
    """Compare the outputs of two runtimes, by name; an output that only one of them has is a difference.

    Args:
        got: the outputs of one.
        expected: those of the other, which are the measure of relative differences.
        rtol: the relative tolerance of floating-point numbers; None for the square root of the epsilon of their type.
        atol: the absolute tolerance, added to the relative one; None for the same, times the root mean square of the
            expected numbers of an array if that is less than 1. Integers, bools and strings have to be equal.
        engine: the engine that ``got`` is of. The usual tolerances then allow for float32 products whose operands its
            device rounds.
    """
    known, result = _by_output(engine, rtol, atol), list[Agreement]()
    for name in dict.fromkeys([*expected, *got]):
        if name not in got or name not in expected:
            result.append(
                _different(name, *("an output" if name in entry else "no output" for entry in (expected, got)))
            )
            continue
        mine, theirs = dict(_parts(name, got[name])), dict(_parts(name, expected[name]))
        if mine.keys() != theirs.keys():
            result.append(_different(name, _described(theirs), _described(mine)))
        elif not mine:
            result.append(Agreement(name, 0, 0, 0.0, 0.0, None, caution="both have no value"))
        else:
            tolerance = known.get(name, Tolerance(rtol, atol))
            result += [_agreement(part, mine[part], theirs[part], tolerance) for part in theirs]
    return result


def _by_output(engine: ICudaEngine | None, rtol: float | None, atol: float | None) -> dict[str, Tolerance]:
    """The tolerances for the outputs of an engine, by name."""
    if engine is None:
        return {}
    tolerances = Tolerances(rtol, atol, engine.network, engine.recipe)
    return {tensor.name: tolerances.of(tensor) for tensor in engine.network.outputs}


def _parts(name: str, value: Any) -> Iterable[tuple[str, Array]]:
    """The arrays of an output: of a tensor, of each tensor of a sequence, of keys and values of a map."""
    if isinstance(value, dict):
        yield from [(f"{name}.keys", _array([*value.keys()])), (f"{name}.values", _array([*value.values()]))]
    elif isinstance(value, list):
        parts: list[Any] = value
        for index, part in enumerate(parts):
            yield from _parts(f"{name}[{index}]", part)
    elif value is not None:
        yield name, _array(value)


def _array(value: Any) -> Array:
    array = np.asarray(value)
    return string_array(array) if array.dtype.kind in "OTU" else array


def _described(parts: Mapping[str, Array]) -> str:
    return f"{len(parts)} arrays" if parts else "no value"


def _different(name: str, expected: Any, got: Any) -> Agreement:
    return Agreement(name, 0, 0, np.inf, np.inf, ((), expected, got))


def _agreement(name: str, got: Array, expected: Array, tolerance: Tolerance) -> Agreement:
    # the values of maps are numbers of Python
    if got.dtype != expected.dtype and not name.endswith((".keys", ".values")):
        return _different(name, type_name(expected.dtype), type_name(got.dtype))
    if got.shape != expected.shape:
        return _different(name, expected.shape, got.shape)
    limits = tolerance.limits(expected)
    worst: Numbers | None = limits.worst(expected, got)
    with np.errstate(all="ignore"):
        differing = int(np.count_nonzero(limits.excess(expected, got) > 0)) if expected.size else 0
    shown = None if worst is None else worst[:3]
    caution = _caution(expected, limits)
    errors, products = _errors(got, expected), tolerance.products.name
    return Agreement(name, expected.size, differing, *errors, shown, limits.atol, caution, products)


def _caution(expected: Array, limits: Limits) -> str:
    """A reason why agreement with an array says little."""
    if not expected.size:
        return "it has no elements"
    if limits.hides_all:
        return f"but the absolute tolerance {limits.atol:.3g} is larger than every number, so zeros would agree too"
    if expected.dtype.kind in "TbO":
        return ""
    if not np.any(expected):
        return "all numbers are 0"
    return "" if np.any(np.isfinite(expected)) else "none of the numbers is finite"


def _errors(got: Array, expected: Array) -> tuple[float, float]:
    """The largest absolute and relative difference of finite numbers; 0 if there is none."""
    if expected.dtype.kind in "TbO":
        return 0.0, 0.0
    a, b = (array.astype(np.float64) for array in (expected, got))
    finite = np.isfinite(a) & np.isfinite(b)
    difference, size = np.abs(a[finite] - b[finite]), np.abs(a)[finite]
    with np.errstate(all="ignore"):
        relative = np.where(difference == 0, 0.0, difference / size)
    return float(difference.max(initial=0)), float(relative.max(initial=0))
