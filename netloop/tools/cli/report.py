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
    says = "compare every tensor of the run with others: onnxruntime, openvino, reference"
    parser.add_argument("--compare", type=arguments.listed_in(PEERS), default=[], metavar="NAMES", help=says)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Run the command."""
    for name in given.compare:
        trt.peers.kind_of(name)  # before JAX runs: importing OpenVINO forks, and a package may be missing
    network = models.load(given.model)
    inputs, loops = None, []
    if given.values or given.inputs or given.compare:
        inputs = on_demand.inputs.arrays_for(network, given.inputs, given.shapes, given.seed, given.ranges)
        loops = on_demand.iterations.made(network, inputs, given.max_trips)
    with status(f"writing {given.output}"):
        trt.report(network, given.output, inputs, given.compare)
    said = f"{given.output}: {models.counted(network.num_layers, 'layer')}"
    print(said, *on_demand.iterations.lines_of(loops), sep="\n")
    return 0
