"""The operators of a model that netloop cannot import, all at once, each with a way out."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from onnx import AttributeProto, NodeProto, defs

from netloop.formats.onnx.importer.function_calls import domain_of
from netloop.formats.onnx.importer.microsoft_schemas import MICROSOFT
from netloop.formats.onnx.importer.model import NEWEST, Model, opsets_of, version_of
from netloop.formats.onnx.importer.node import ImportedNode
from netloop.formats.onnx.importer.operator_table import TABLE
from netloop.values.diagnostics import Finding, did_you_mean, reason

LAYOUTS = "onnxruntime made it for one machine: load the model before that, or save at ORT_ENABLE_EXTENDED or below"
OPTIMIZED = "if onnxruntime's tools made it, load the model before them, or save at ORT_ENABLE_BASIC"
FIXES = {"com.microsoft.nchwc": LAYOUTS, "com.ms.internal.nhwc": LAYOUTS, MICROSOFT: OPTIMIZED}
"""Fixes for the operators of a domain that netloop does not import."""


def unknown_operators(model: Model, custom: Collection[tuple[str, str]] = ()) -> dict[str, list[ImportedNode]]:
    """The nodes of each operator that netloop cannot import, those inside nodes and in functions too.

    ``custom`` are the domains and names of operators that the caller imports.
    """
    nodes: dict[str, list[ImportedNode]] = {}
    for node in nodes_of(model):
        if node.key not in model.functions and node.key[:2] not in custom and not is_known(node):
            nodes.setdefault(node.operator, []).append(node)
    return nodes


def unknown_findings(model: Model, unknown: Mapping[str, list[ImportedNode]]) -> list[Finding]:
    """A finding for each unknown operator, at its first node."""
    findings: list[Finding] = []
    for operator, nodes in unknown.items():
        what = f"netloop has no operator {operator}" + (f", which {len(nodes)} nodes have" if len(nodes) > 1 else "")
        where = f"{model.name}, {nodes[0].description}"
        findings.append(Finding("NL744", what, where, reason("NL744"), _way_out(model, nodes[0]), at=nodes[0]))
    return findings


def nodes_of(model: Model) -> Iterator[ImportedNode]:
    """The nodes of a model, those inside nodes, and those of the functions that they call, of each function once."""
    called: set[tuple[str, str, str]] = set()
    scopes = [_NodeScope(model.proto.graph.node, model.opsets)]
    while scopes:
        scope = scopes.pop()
        for number, proto in enumerate(scope.nodes):
            at = number if scope.at is None else scope.at
            node = ImportedNode(proto, version_of(proto, scope.opsets), number, outermost=at, calls=scope.calls)
            yield node
            inner = [attribute.g.node for attribute in proto.attribute if attribute.type == AttributeProto.GRAPH]
            scopes += [replace(scope, nodes=container, at=at) for container in inner]
            body = model.functions.get(node.key)
            if body is not None and node.key not in called:
                called.add(node.key)
                opsets = {**scope.opsets, **opsets_of(body.opset_import)}
                scopes.append(_NodeScope(body.node, opsets, at, (*scope.calls, node)))


@dataclass(frozen=True)
class _NodeScope:
    """A graph or function whose nodes are to be looked at.

    Attributes:
        nodes: the nodes.
        opsets: the version of each domain.
        at: the number of the node of the model's own graph that it is inside; None for that graph.
        calls: the nodes that call the functions around it, the outermost first.
    """

    nodes: Sequence[NodeProto]
    opsets: Mapping[str, int]
    at: int | None = None
    calls: tuple[ImportedNode, ...] = ()


def is_known(node: ImportedNode) -> bool:
    """Whether netloop has an operator, or the standard defines it by others."""
    schema: Any = node.schema  # the stubs of onnx lack some of its methods
    is_function = schema is not None and (schema.has_function or schema.has_context_dependent_function)
    return is_function or TABLE.version_at(node.key[:2], node.since) is not None


def _way_out(model: Model, node: ImportedNode) -> str:
    """The fix for a node whose operator is unknown, as its model's owner can apply it."""
    key = f"{node.domain}::{node.op}" if node.domain else node.op
    own = f"pass operators={{{key!r}: function}}, a function that adds its layers, or register a plugin of this name"
    if node.domain in FIXES:
        return f"{FIXES[node.domain]}; or {own}"
    if node.domain not in NEWEST:
        return f"{own}; or make it a function of the model"
    if any(
        domain_of(opset.domain) == node.domain and opset.version > node.version for opset in model.proto.opset_import
    ):
        return f"upgrade the package onnx; or {own}"
    versions = sorted(TABLE.versions((node.domain, node.op)))
    if versions:
        return f"export the model for version {versions[0]} of the operators, or convert it with onnx.version_converter"
    standard = [schema.name for schema in defs.get_all_schemas() if schema.domain == node.domain]
    return (node.schema is None and did_you_mean(node.op, standard)) or f"export the model without it; or {own}"
