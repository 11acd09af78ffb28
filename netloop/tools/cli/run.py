"""``netloop run``: a model once, and its outputs compared with those of other runtimes."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import netloop as trt
from netloop.tools.cli import arguments, models, on_demand
from netloop.tools.cli.progress import status

EXAMPLES = (
    "netloop run model.onnx --shapes x:2x3 --compare onnxruntime,reference",
    "netloop run model.onnx --inputs inputs.npz --output outputs.npz",
    "netloop run model.onnx --inputs x=[[1,2,3]] --json",
)
PEERS = ("onnxruntime", "openvino", "reference")


def add_to(commands: Any) -> None:
    """Add the command to a command line."""
    parser = arguments.add_command(commands, "run", EXAMPLES, "The exit status is 1 if the outputs differ.")
    arguments.add_model(parser)
    arguments.add_weights(parser)
    arguments.add_inputs(parser)
    says = "run the model there too, and compare the outputs: onnxruntime, openvino, reference"
    parser.add_argument("--compare", type=arguments.listed_in(PEERS), default=[], metavar="NAMES", help=says)
    arguments.add_tolerances(parser)
    arguments.add_precision(parser)
    arguments.add_device(parser)
    says = "print the outputs, the iterations of loops and the comparisons as JSON"
    parser.add_argument("--json", action="store_true", help=says)
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the outputs to this .npz file")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command; 1 if outputs differ, or another runtime fails."""
    network = models.load(args.model, args.shapes)
    models.set_weights(network, args.weights)
    arrays = on_demand.inputs.arrays_for(network, args.inputs, args.shapes, args.seed, args.ranges)
    loops = on_demand.iterations.counted(network, arrays, args.max_trips)
    engine = models.engine(args.model, network, args.no_tf32, args.weights)
    with status(f"running {args.model}"):
        values = on_demand.outputs.as_numpy(engine(arrays))
    if not args.json:
        print(*on_demand.outputs.lines_of(values), *on_demand.iterations.lines_of(loops), sep="\n")
    if args.output is not None:
        on_demand.outputs.save(values, args.output)
    comparisons = {value: _compared(value, args, engine, arrays, values) for value in args.compare}
    if args.json:
        records = {
            name: None if comparison is None else [one.as_json() for one in comparison]
            for name, comparison in comparisons.items()
        }
        outputs, counts = on_demand.outputs.records_of(values), on_demand.iterations.records_of(loops)
        print(json.dumps({"outputs": outputs, "loops": counts, "comparisons": records}, indent=2))
    return (
        0
        if all(comparison is not None and all(one.agrees for one in comparison) for comparison in comparisons.values())
        else 1
    )


def _compared(name: str, args: argparse.Namespace, engine: trt.ICudaEngine, arrays: Any, outputs: Any) -> Any:
    """How well each output agrees with another runtime's; None, with the reason on stderr, if that fails."""
    try:
        with status(f"running {args.model} in {name}"):
            expected = trt.peers.peer(name, engine.network, models.file_of_peers(args))(arrays)
    except (trt.ExecutionError, trt.NetworkError) as error:
        print(error, file=sys.stderr)
        return None
    theirs = on_demand.outputs.as_numpy(expected)
    agreements = trt.peers.agreements(outputs, theirs, args.rtol, args.atol, engine=engine)
    if not args.json:
        print(f"\nnetloop and {name}:", *(f"  {agreement}" for agreement in agreements), sep="\n")
    return agreements
