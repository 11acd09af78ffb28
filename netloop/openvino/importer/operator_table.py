"""The table of operators: which function makes layers of which operator, of which versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from inspect import Parameter, signature
from typing import TypeVar

from netloop.openvino.importer.call import Operator
from netloop.openvino.importer.model import XmlLayer

O = TypeVar("O", bound=Operator)  # noqa: E741 (an operator)

_TABLE: dict[str, dict[int, Operator]] = {}
_NAMES: dict[str, str] = {}
"""The operators as models write them, by their names in small letters."""

NEWEST = 16
"""The newest operator set."""

# fmt: off
CHANGED: dict[str, tuple[int, ...]] = {
    "assign": (3, 6),            "avgpool": (1, 14, 16),  "batchnorminference": (1, 5),
    "broadcast": (1, 3),         "deformableconvolution": (1, 8),                     "detectionoutput": (1, 8),
    "gather": (1, 7, 8),         "gathernd": (5, 8),      "gelu": (2, 7),             "interpolate": (1, 4, 11),
    "lstmcell": (1, 4),          "mvn": (2, 6),           "maxpool": (1, 8, 14),      "multiclassnms": (8, 9),
    "nonmaxsuppression": (1, 3, 4, 5, 9),                 "onehot": (1, 16),          "pad": (1, 12),
    "priorbox": (1, 8),          "proposal": (1, 4),      "roialign": (3, 9),         "range": (1, 4),
    "readvalue": (3, 6),         "scatterelementsupdate": (3, 12),                    "scatterndupdate": (4, 15),
    "shapeof": (1, 3),           "softmax": (1, 8),       "squeeze": (1, 15),         "topk": (1, 3, 11),
}
# fmt: on
"""The operator sets in which an operator, its name in small letters, came and changed, for those that changed."""


def operator(name: str, *versions: str) -> Callable[[O], O]:
    """Enter a function as that of an operator, of the versions that came with some operator sets: ``opset1``.

    Each version of an operator serves up to the operator set in which the operator changed.
    """

    def enter(function: O) -> O:
        _NAMES.setdefault(name.lower(), name)
        entered = _TABLE.setdefault(name.lower(), {})
        for version in versions:
            number = int(version.removeprefix("opset"))
            assert number not in entered, f"{name}-{number} is there already"
            assert number in CHANGED.get(name.lower(), (number,)), f"{name} did not change in {version}"
            entered[number] = function
        return function

    return enter


def function_of(layer: XmlLayer) -> Operator | None:
    """What makes layers of a layer; None if nothing does."""
    return find(layer.type, layer.version or f"opset{min(_TABLE.get(layer.type.lower(), {1: None}))}")


def find(name: str, version: str) -> Operator | None:
    """The function of an operator as an operator set has it; None if there is none."""
    number = version.removeprefix("opset")
    entered = _TABLE.get(name.lower(), {})
    if not (version.startswith("opset") and number.isdecimal() and len(number) < 3 and int(number) <= NEWEST):
        return None
    since = max((each for each in CHANGED.get(name.lower(), tuple(entered)) if each <= int(number)), default=None)
    return None if since is None else entered.get(since)


@cache
def arity(function: Operator) -> tuple[int, int]:
    """How many inputs a function takes at the least and at the most."""
    inputs = list(signature(function).parameters.values())[1:]
    several = any(each.kind is Parameter.VAR_POSITIONAL for each in inputs)
    own = [each for each in inputs if each.kind is Parameter.POSITIONAL_OR_KEYWORD]
    return sum(each.default is Parameter.empty for each in own), MANY if several else len(own)


MANY = 1 << 20
"""More inputs than any layer has."""


def versions_of(name: str) -> list[int]:
    """The operator sets of the versions of an operator that are entered."""
    return sorted(_TABLE.get(name.lower(), {}))


def all_entered() -> Mapping[str, Mapping[int, Operator]]:
    """The functions of all operators, by name and by operator set."""
    return {_NAMES[name]: versions for name, versions in _TABLE.items()}
