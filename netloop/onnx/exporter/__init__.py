"""Networks to ONNX models."""

from __future__ import annotations

import os
from typing import Any

from onnx import ModelProto

from netloop.check import require_valid
from netloop.diagnostics import Finding, NetworkError
from netloop.graph.layer import check_instance
from netloop.network import INetworkDefinition
from netloop.onnx.exporter.model_files import write_model
from netloop.onnx.exporter.proto import model
from netloop.onnx_graph.exporter import NetworkExporter
from netloop.onnx_graph.graph import OnnxGraph
from netloop.onnx_graph.node_builder import E8M0, FP4, INT2, UINT2

LEAST_OPSET, MOST_OPSET = 21, 26
SINCE: dict[Any, int] = {FP4: 23, E8M0: 24, INT2: 25, UINT2: 25, "BitCast": 26, "CumProd": 26}
"""The first opsets with some element types and operators."""


def to_model(network: INetworkDefinition, *, opset: int | None = None, drop_assertions: bool = False) -> ModelProto:
    """The ONNX model of a network.

    Args:
        network: the network.
        opset: the version of the operators, 21 to 26; the least that has what the network needs if it is not given.
        drop_assertions: whether to leave assertions out, which ONNX does not have.

    Returns:
        A model of the operators of ``ai.onnx`` alone, inputs and outputs called as in the network.

    Raises:
        NetworkError: the network has errors, or something in it cannot be expressed in ONNX; all of it is told.
        ValueError: there is no such opset.
    """
    check_instance("network", network, INetworkDefinition)
    if opset is not None and not LEAST_OPSET <= check_instance("opset", opset, int) <= MOST_OPSET:
        raise ValueError(f"opset is {opset}, and must be from {LEAST_OPSET} to {MOST_OPSET}")
    walk = NetworkExporter(network, require_valid(network), check_instance("drop_assertions", drop_assertions, bool))
    graph = walk.graph()
    return model(graph, _opset(network, graph, opset))


def save(
    network: INetworkDefinition,
    path: str | os.PathLike[str],
    *,
    opset: int | None = None,
    drop_assertions: bool = False,
    external_above: int | None = None,
) -> None:
    """Write the ONNX model of a network.

    It is written beside ``path`` and then renamed: whatever happens meanwhile, the old file or the new one is there.

    Args:
        network: the network.
        path: the file.
        opset: the version of the operators; see ``to_model``.
        drop_assertions: whether to leave assertions out.
        external_above: arrays of more bytes go into a file of their own beside ``path``, called after it and after
            what is in it; without it they do so only where the model would be longer than a protobuf can be.

    Raises:
        NetworkError: the network has errors, or something in it cannot be expressed in ONNX; all of it is told.
        ValueError: there is no such opset, or ``external_above`` is negative.
    """
    write_model(to_model(network, opset=opset, drop_assertions=drop_assertions), path, external_above)


def _opset(network: INetworkDefinition, graph: OnnxGraph, wanted: int | None) -> int:
    """The opset of a graph: the one that is wanted, or the least that has its element types and operators.

    Raises:
        NetworkError: the one that is wanted does not have them.
    """
    graphs = [inside for inside, _ in graph.walk()]
    used = {value.dtype for inside in graphs for value in inside.values()}
    used |= {node.op for inside in graphs for node in inside.nodes}
    least = max([LEAST_OPSET, *(since for each, since in SINCE.items() if each in used)])
    if wanted is not None and wanted < least:
        late = [str(each) for each, since in SINCE.items() if each in used and since > wanted]
        what = f"{network.name!r} needs ONNX's {' and '.join(late)}"
        fix = f"give opset={least}, or a later one"
        raise NetworkError(Finding("NL731", what, "", f"opset {wanted} has no such thing", fix, at=network))
    return wanted or least
