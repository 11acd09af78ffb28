"""The table of operators: which function makes layers of which operator, as of which version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from onnx import AttributeProto

from netloop.onnx.importer.call import Operator
from netloop.onnx.importer.node import OnnxNode, schema_of

O = TypeVar("O", bound=Operator)  # noqa: E741 (an operator)

_TABLE: dict[tuple[str, str], dict[int, Operator]] = {}


def operator(*names: str, since: int = 1, domain: str = "") -> Callable[[O], O]:
    """Enter a function as that of operators, as of the version in which they came to mean what it makes of them.

    It serves all later versions too, up to the next one that is entered: most new versions only take more types.
    """

    def enter(function: O) -> O:
        for name in names:
            versions = _TABLE.setdefault((domain, name), {})
            assert since not in versions, f"{name}-{since} is there already"
            versions[since] = function
        return function

    return enter


def entered(domain: str, op: str) -> dict[int, Operator]:
    """The functions of an operator, by the version as of which they serve; none if it is not there."""
    return _TABLE.get((domain, op), {})


def all_entered() -> Mapping[tuple[str, str], Mapping[int, Operator]]:
    """The functions of all operators, by domain and name, and by version."""
    return _TABLE


def version_for(node: OnnxNode) -> int | None:
    """The newest version entered that is not newer than that of a node; None if there is none."""
    return max((each for each in entered(node.domain, node.op) if each <= node.since), default=None)


def news(node: OnnxNode, version: int) -> str:
    """What a node has that came after the version of its operator that is entered; nothing if it has none."""
    old, new = schema_of(node.domain, node.op, version), node.schema
    if old is None or new is None or old.since_version == new.since_version:
        return ""
    attributes = [each for each in node.given if each not in old.attributes and _is_set(node, each)]
    if attributes:
        return f"the attribute {attributes[0]!r}"
    return "an input" if len(node.proto.input) > old.max_input else ""


def _is_set(node: OnnxNode, name: str) -> bool:
    """Whether an attribute has another value than that of the standard."""
    assert node.schema is not None
    standard = node.schema.attributes[name].default_value
    same = AttributeProto.FromString(node.given[name].SerializeToString())
    same.doc_string = ""
    return same != standard
