"""The data of the page as plain JSON values: graph, engine, run."""

import difflib
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from netloop.api.engine import ICudaEngine, compile
from netloop.compiler.execution.trip_counts import trip_counts
from netloop.compiler.passes import PASSES
from netloop.model.check import check
from netloop.model.graph.attributes import check_instance
from netloop.model.graph.layer import ILayer
from netloop.model.layers.loop import ILoop
from netloop.model.nest.listing import listing, summary
from netloop.model.network import INetworkDefinition
from netloop.model.reference import trace
from netloop.tools.report.compared import Peer, check_peer, compared
from netloop.tools.report.graph import Graph, loop_name, text
from netloop.tools.report.values import run_values
from netloop.values.diagnostics import NetloopError, NetworkError, Severity
from netloop.values.diagnostics.finding import Finding

QUOTED = re.compile(r"'([^']+)'")
"""A name in the note of a pass."""
NUMBER = re.compile(r"%\d+")
"""The number of a layer, which passes change."""
TIMED_CALLS = 3
"""The calls of which the times of layers are the means."""
MOST_TIMES = 20
"""The most layers whose times are listed."""
MOST_ALIGNED = 600
"""The most layers of a network whose listings before and after the passes are aligned, in time that grows faster."""


def page_model(
    shown: INetworkDefinition | ICudaEngine, inputs: Mapping[str, Any] | None = None, peers: Sequence[Peer] = ()
) -> dict[str, Any]:
    """The data of the page of a network or an engine.

    Args:
        shown: a network, which may be invalid, or an engine.
        inputs: an array for each input, by name; None for a page without values.
        peers: the runtimes that the outputs for these inputs are compared with.

    Raises:
        TypeError: ``shown`` is neither a network nor an engine, or a peer is neither a name nor callable.
        ValueError: there are peers and no inputs, or a peer is unknown.
        ModuleNotFoundError: the package of a peer is not installed.
        InputError: an input is missing, unknown, or of another type or shape.
    """
    for peer in peers:
        check_peer(peer)
    if peers and inputs is None:
        raise ValueError("peers are compared on inputs, and inputs is None")
    if isinstance(shown, ICudaEngine):
        engine, network, findings = shown, shown.network, check(shown.network)
    else:
        network = check_instance("network", shown, INetworkDefinition)
        findings = check(network)
        engine, findings = _compiled(network, findings)
    graph = Graph(network)
    model: dict[str, Any] = {"summary": text(summary(network), 500), "undefined": graph.undefined}
    model |= {
        "nodes": graph.nodes,
        "edges": graph.edges,
        "findings": [_finding(finding, graph) for finding in findings],
    }
    model |= {"engine": None, "run": None, "peers": []}
    if engine is not None and inputs is not None:
        model["run"] = run_values(network, trace(network, inputs, max_trips=engine.max_trips), graph)
        model["peers"] = [compared(engine, inputs, peer, graph) for peer in peers]
    if engine is not None:
        model["engine"] = _engine(engine, inputs, graph)
        _add_strategies(engine, network, graph, _iterations(network, inputs, engine.max_trips))
        _add_notes(model, graph)
        model["engine"]["rewritten"] = _before_and_after(engine)
    return model


def _compiled(network: INetworkDefinition, findings: list[Finding]) -> tuple[ICudaEngine | None, list[Finding]]:
    """An engine if the network is valid and has outputs, and the findings, with those of the compilation."""
    if not network.outputs or any(finding.severity is Severity.ERROR for finding in findings):
        return None, findings
    try:
        return compile(network), findings
    except NetworkError as error:
        return None, [*findings, *error.findings]


def _finding(finding: Finding, graph: Graph) -> dict[str, Any]:
    node = graph.of_layer.get(finding.at, -1) if isinstance(finding.at, ILayer) else -1
    return {"severity": finding.severity.name, "text": text(str(finding), 2000), "node": node}


def _engine(engine: ICudaEngine, inputs: Mapping[str, Any] | None, graph: Graph) -> dict[str, Any]:
    phases: dict[str, float] = {}
    times: dict[str, float] = {}
    error = ""
    if inputs is not None:
        try:
            phases, times = engine.profile(inputs), engine.layer_times(inputs, TIMED_CALLS)
        except NetloopError as failure:
            error = text(str(failure), 2000)
    return {
        "phases": [[name, seconds] for name, seconds in phases.items()],
        "times": _times(times, graph),
        "error": error,
        "scratch": engine.scratch_size,
        "launches": None if engine.launches is None else asdict(engine.launches),
        "weights": sum(constant.weights.nbytes for constant in engine.constants),
        "notes": [
            {"by": note.by, "what": text(note.what, 500), "rule": PASSES[note.by].rule if note.by in PASSES else ""}
            for note in engine.notes
        ],
    }


def _times(times: Mapping[str, float], graph: Graph) -> list[list[Any]]:
    """The names, seconds and nodes of the layers and loops that take longest."""
    nodes = {layer.name: node for layer, node in graph.of_layer.items()}
    nodes |= {group.name: boxes[0] for group, boxes in graph.of_group.items()}
    return [[text(name), seconds, nodes.get(name, -1)] for name, seconds in [*times.items()][:MOST_TIMES]]


def _iterations(
    network: INetworkDefinition, inputs: Mapping[str, Any] | None, max_trips: int | None
) -> dict[ILoop, int]:
    """The iterations of each loop in the run; none if there is no run, or it fails."""
    try:
        counts = [] if inputs is None else trip_counts(network, inputs, max_trips)
    except NetloopError:
        return {}
    return {count.loop: count.iterations for count in counts}


def _add_strategies(
    engine: ICudaEngine, network: INetworkDefinition, graph: Graph, iterations: Mapping[ILoop, int]
) -> None:
    strategies, batched = engine.loop_strategies, engine.batched_layers
    for loop in network.loops:
        name = loop_name(loop, network.loops)
        if name not in strategies:
            continue
        strategy = strategies[name]
        layers = [text(layer.name) for layer in batched.get(name, [])]
        for node in graph.of_group.get(loop, ()):
            graph.nodes[node]["strategy"] = {
                "name": strategy.name,
                "why": strategy.why,
                "trips": iterations.get(loop, strategy.trips),
            }
            graph.nodes[node]["batched"] = layers


def _add_notes(model: dict[str, Any], graph: Graph) -> None:
    """List with each node the notes of passes that quote the name of its layer or of one of its outputs."""
    of_name: dict[str, set[int]] = {}
    for layer, node in graph.of_layer.items():
        for name in (layer.name, *(tensor.name for tensor in layer.outputs)):
            of_name.setdefault(name, set()).add(node)
    for group, boxes in graph.of_group.items():
        of_name.setdefault(group.name, set()).update(boxes)
    for number, note in enumerate(model["engine"]["notes"]):
        numbers = {node for name in QUOTED.findall(note["what"]) for node in of_name.get(name, ())}
        for node in sorted(numbers):
            model["nodes"][node].setdefault("notes", []).append(number)


def _before_and_after(engine: ICudaEngine) -> list[list[str]]:
    """The listings of the network before and after the passes, aligned: equal lines are side by side."""
    after = engine.rewritten_network
    if after is None or max(len(after.layers), len(engine.network.layers)) > MOST_ALIGNED:
        return []
    sides = [
        [NUMBER.sub("%", line) for line in listing(definition, unused=False).splitlines()[1:]]
        for definition in (engine.network, after)
    ]
    texts: list[list[str]] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, *sides, autojunk=False).get_opcodes():
        left, right = sides[0][a:b], sides[1][c:d]
        texts += [[kind, *entry] for entry in itertools.zip_longest(left, right, fillvalue="")]
    return texts
