"""``netloop report``: a page that shows a model in a browser."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import netloop as trt
from netloop.tools.cli import arguments, models, on_demand
from netloop.tools.cli.progress import status
from netloop.tools.cli.run import PEERS

EXAMPLES = (
    "netloop report model.onnx -o report.html",
    "netloop report model.onnx --values --shapes x:2x3 --compare onnxruntime,reference",
)


def add_to(commands: Any) -> None:
    """Add the command to a command line."""
    more = "The page is one file, which loads nothing from elsewhere."
    parser = arguments.add_command(commands, "report", EXAMPLES, more)
    arguments.add_model(parser)
    parser.add_argument("-o", "--output", type=Path, default=Path("report.html"), metavar="FILE", help="the page")
    says = "run the model too, on random inputs if there are no others, and show all values and times"
    parser.add_argument("--values", action="store_true", help=says)
    arguments.add_inputs(parser)
    arguments.add_precision(parser)
    arguments.add_device(parser)
    says = "compare every tensor of the run with others: onnxruntime, openvino, reference"
    parser.add_argument("--compare", type=arguments.listed_in(PEERS), default=[], metavar="NAMES", help=says)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    network = models.load(args.model, args.shapes)
    inputs, loops = None, []
    if args.values or args.inputs or args.compare:
        inputs = on_demand.inputs.arrays_for(network, args.inputs, args.shapes, args.seed, args.ranges)
        loops = on_demand.iterations.counted(network, inputs, args.max_trips)
    # the page of a network may be that of one with errors, of which there is no engine
    shown = models.engine(args.model, network, no_tf32=True) if args.no_tf32 else network
    with status(f"writing {args.output}"):
        trt.report(shown, args.output, inputs, args.compare)
    said = f"{args.output}: {models.counted(network.num_layers, 'layer')}"
    print(said, *on_demand.iterations.lines_of(loops), sep="\n")
    return 0
