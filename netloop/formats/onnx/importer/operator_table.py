"""The table of ONNX operators: the function of each operator, by domain, name and version."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from onnx import AttributeProto

from netloop.formats.onnx.importer.microsoft_schemas import MICROSOFT
from netloop.formats.onnx.importer.node import ImportedNode, schema_of
from netloop.formats.shared.importer import Operator
from netloop.formats.shared.operator_table import OperatorTable
from netloop.values.diagnostics import LayerError, quoted

F = TypeVar("F", bound=Operator)

TABLE: OperatorTable[tuple[str, str], Operator] = OperatorTable()
"""The functions by domain and name."""


def operator(*names: str, since: int | Sequence[int] = 1, domain: str = "") -> Callable[[F], F]:
    """Return a decorator that registers a function for operators of a domain, from one or more versions on.

    Every version whose schema the function supports is given: ``newer_feature`` compares a node with the schema of the
    newest of them.
    """
    return TABLE.register(*((domain, name) for name in names), since=since)


def microsoft(*names: str) -> Callable[[F], F]:
    """Return a decorator that registers a function for operators of onnxruntime."""
    return operator(*names, domain=MICROSOFT)


def classical(*names: str, since: int | Sequence[int] = 1) -> Callable[[F], F]:
    """Return a decorator that registers a function for operators of classical machine learning."""
    return operator(*names, since=since, domain="ai.onnx.ml")


def function_of(node: ImportedNode) -> Operator | None:
    """The function of a node's operator; None if the table has none.

    Raises:
        LayerError: the node uses an attribute or input that is newer than the function.
    """
    key = node.domain, node.op
    version = TABLE.version_at(key, node.since)
    if version is None:
        return None
    newer = newer_feature(node, version)
    if newer:
        raise LayerError(f"{node.operator} has {newer}", f"netloop supports it as of version {version}", "", "NL744")
    return TABLE.find(key, version)


def newer_feature(node: ImportedNode, version: int) -> str:
    """An attribute or input of a node that its operator did not have in a version; empty if there is none."""
    old, new = schema_of(node.domain, node.op, version), node.schema
    if old is None or new is None or old.since_version == new.since_version:
        return ""
    attributes = [name for name in node.attributes if name not in old.attributes and _is_set(node, name)]
    if attributes:
        return f"the attribute {quoted(attributes[0])}"
    return "an input" if len(node.proto.input) > old.max_input else ""


def _is_set(node: ImportedNode, name: str) -> bool:
    """Whether the value of an attribute differs from the default of the standard."""
    assert node.schema is not None
    standard = node.schema.attributes[name].default_value
    same = AttributeProto.FromString(node.attributes[name].SerializeToString())
    same.doc_string = ""
    return same != standard
