"""The table of OpenVINO operators: the function of each operator, by name and version."""

from collections.abc import Callable
from typing import TypeVar

from netloop.formats.openvino.importer.model import XmlLayer
from netloop.formats.shared.importer import Operator
from netloop.formats.shared.operator_table import OperatorTable

F = TypeVar("F", bound=Operator)

TABLE: OperatorTable[str, Operator] = OperatorTable()
"""The functions by the lower-case name of the operator; a version is the operator set in which it came or changed."""
NAMES: dict[str, str] = {}
"""The names as models write them, by their lower-case form."""

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
"""All versions of each operator that has several, by its lower-case name."""


def operator(name: str, *versions: str) -> Callable[[F], F]:
    """Return a decorator that registers a function for versions of an operator, such as ``opset1``.

    A version of an operator serves up to the operator set in which the operator changes.
    """

    def enter(function: F) -> F:
        key = name.lower()
        NAMES.setdefault(key, name)
        numbers = [int(version.removeprefix("opset")) for version in versions]
        assert key not in CHANGED or {*numbers} <= {*CHANGED[key]}, f"{name} did not change in one of {versions}"
        return TABLE.register(key, since=numbers)(function)

    return enter


def function_of(layer: XmlLayer) -> Operator | None:
    """The function of a layer's operator; None if the table has none. Without a version, it is the oldest."""
    return find(layer.type, layer.version or f"opset{min(TABLE.versions(layer.type.lower()), default=1)}")


def find(name: str, version: str) -> Operator | None:
    """The function of an operator in an operator set; None if the table has none."""
    key, digits = name.lower(), version.removeprefix("opset")
    if not (version.startswith("opset") and digits.isdecimal() and len(digits) < 3 and int(digits) <= NEWEST):
        return None
    if key not in CHANGED:
        return TABLE.find(key, int(digits))
    since = max((number for number in CHANGED[key] if number <= int(digits)), default=0)
    return TABLE.versions(key).get(since)
