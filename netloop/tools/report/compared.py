"""Comparison of an engine with other runtimes, as rows of the page."""

from collections.abc import Callable, Mapping
from typing import Any

from netloop.api.compare import Difference, compare
from netloop.api.engine import ICudaEngine
from netloop.tools import peers
from netloop.tools.report.graph import Graph, text
from netloop.values.diagnostics import NetloopError

Peer = str | Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""The other side of a comparison: the name of a runtime, or a function from inputs to outputs by name."""
REFERENCE = "reference"


def check_peer(peer: Any) -> None:
    """Raise an error for an engine that cannot be compared.

    Raises:
        TypeError: it is neither a name nor callable.
        ValueError: there is no runtime of this name.
        ModuleNotFoundError: the package of the runtime is not installed.
    """
    if isinstance(peer, str):
        peers.kind_of(peer)
    elif not callable(peer):
        raise TypeError(f"a peer is the name of a runtime or a function from inputs to outputs, not {peer!r}")


def compared(engine: ICudaEngine, inputs: Mapping[str, Any], peer: Peer, graph: Graph) -> dict[str, Any]:
    """The rows of a table of differences, and the node of the first tensor that differs, -1 if there is none."""
    name = peer if isinstance(peer, str) else getattr(peer, "__name__", type(peer).__name__)
    try:
        rows, first = _rows(engine, inputs, peer)
    except NetloopError as error:
        rows, first = [_row("outputs", False, str(error))], None
    return {"peer": text(name), "rows": rows, "node": -1 if first is None else _node(graph, first)}


def _rows(engine: ICudaEngine, inputs: Mapping[str, Any], peer: Peer) -> tuple[list[dict[str, Any]], Difference | None]:
    if peer == REFERENCE:
        comparison = compare(engine.network, inputs, engine)
        return [_row("every tensor", comparison.agrees, str(comparison))], comparison.difference
    if not isinstance(peer, str):
        return _outputs(engine, inputs, peer), None
    rows = _outputs(engine, inputs, peers.peer(peer, engine.network))
    first = peers.difference_from(peers.kind_of(peer), engine.network, inputs, engine=engine)
    said = "; ".join(filter(None, [str(first or "no tensor differs"), peers.precision_note(engine)]))
    return [*rows, _row("every tensor", first is None, said)], first


def _outputs(
    engine: ICudaEngine, inputs: Mapping[str, Any], peer: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> list[dict[str, Any]]:
    ours, theirs = engine(inputs), peer(inputs)
    missing = [_row(name, False, "missing") for name in ours if name not in theirs]
    got, expected = ({name: entry[name] for name in ours if name in theirs} for entry in (ours, theirs))
    return missing + [
        _row(agreement.name, agreement.agrees, str(agreement))
        for agreement in peers.agreements(got, expected, engine=engine)
    ]


def _row(output: str, agrees: bool, what: str) -> dict[str, Any]:
    return {"output": text(output), "agrees": agrees, "what": text(what.removeprefix(f"{output}: "), 2000)}


def _node(graph: Graph, difference: Difference) -> int:
    named = (
        node for layer, node in graph.of_layer.items() for tensor in layer.outputs if tensor.name == difference.tensor
    )
    return next(named, -1)
