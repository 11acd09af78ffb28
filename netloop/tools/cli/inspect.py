"""``netloop inspect``: what is in a model."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from netloop.tools.cli import arguments, models, on_demand
from netloop.tools.cli.models import counted

EXAMPLES = (
    "netloop inspect model.onnx",
    "netloop inspect model.onnx --layers --passes --shapes x:2x3",
    "netloop inspect model.plan --json",
)
LARGEST = 5
"""How many weights are listed."""


def add_to(commands: Any) -> None:
    """Add the command to a command line."""
    parser = arguments.add_command(commands, "inspect", EXAMPLES)
    arguments.add_model(parser)
    parser.add_argument("--layers", action="store_true", help="list all layers, by loops and branches")
    says = "compile the model too, and print the strategy of each loop, what the passes changed, and a GPU's launches"
    parser.add_argument("--passes", action="store_true", help=says)
    arguments.add_inputs(parser)
    arguments.add_precision(parser)
    arguments.add_device(parser)
    parser.add_argument("--json", action="store_true", help="print everything as JSON, with all layers and weights")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    network = models.load(args.model, args.shapes)
    contents = on_demand.contents
    values = contents.of_network(network)
    if args.passes:
        arrays = on_demand.inputs.arrays_for(network, args.inputs, args.shapes, args.seed, args.ranges)
        on_demand.iterations.counted(network, arrays, args.max_trips)
        engine = models.engine(args.model, network, args.no_tf32)
        engine(arrays)
        values |= contents.of_engine(engine)
    print(json.dumps(values, indent=2) if args.json else "\n".join(_lines(str(args.model), values)))
    if args.layers and not args.json:
        print("", network, sep="\n")
    return 0


def _lines(model: str, found: dict[str, Any]) -> Iterator[str]:
    sizes = f"{found['elements']:,} numbers in {counted(len(found['weights']), 'array')}, {found['bytes']:,} bytes"
    yield f"{model}: {found['name']!r}, {counted(len(found['layers']), 'layer')}; weights: {sizes}"
    for side in ("inputs", "outputs"):
        yield f"{side}:"
        yield from (f"  {value['name']}: {value['type']}" for value in found[side])
    kinds = Counter(value["kind"] for value in found["layers"])
    yield "layers by kind:"
    yield "  " + ", ".join(
        f"{number} {kind}" for kind, number in sorted(kinds.items(), key=lambda entry: (-entry[1], entry[0]))
    )
    if found["loops"]:
        yield "loops:"
        yield from (_loop(value) for value in found["loops"])
    if found["conditionals"]:
        yield f"conditionals: {', '.join(map(repr, found['conditionals']))}"
    largest = sorted(found["weights"], key=lambda value: -value["bytes"])[:LARGEST]
    if largest:
        yield "largest weights:"
        yield from (f"  {value['name']}: {value['type']}, {value['bytes']:,} bytes" for value in largest)
    yield from _engine_lines(found)


def _loop(loop: dict[str, Any]) -> str:
    parts = [counted(loop[part], part[:-1].replace("_", " ")) for part in ("recurrences", "iterators", "loop_outputs")]
    inside = f" in {loop['inside']!r}" if loop["inside"] else ""
    limits = " and ".join(loop["limits"]) or "no trip limit"
    return f"  {loop['name']!r}{inside}: {limits}, {', '.join(parts)}, {counted(loop['layers'], 'layer')} inside"


def _engine_lines(found: dict[str, Any]) -> Iterator[str]:
    if "strategies" not in found:
        return
    for value in found["strategies"]:
        yield f"loop {value['name']!r} runs as {value['strategy']}: {value['why']}"
    yield "what passes changed:" if found["passes"] else "no pass changed anything"
    for value in found["passes"]:
        yield f"  {value['name']}: {value['done']}"
    if found["launches"] is not None:
        yield from _launch_lines(found["launches"])


def _launch_lines(launches: dict[str, Any]) -> Iterator[str]:
    total = "as many as the run decides" if launches["total"] is None else f"{launches['total']:,}"
    yield f"launches of a call on the GPU: {total}; outside of loops and branches: {launches['entry']:,}"
    for loop in launches["loops"]:
        times = "" if loop["iterations"] is None else f", {loop['iterations']:,} times"
        yield f"  of an iteration of the compiled loop {loop['name']!r}: {loop['launches']:,}{times}"
