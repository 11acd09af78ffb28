"""``netloop report``: a page that shows a model in a browser."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import netloop as trt
from netloop.tools.cli import arguments, models, on_demand
from netloop.tools.cli.failures import Misuse
from netloop.tools.cli.progress import status
from netloop.tools.cli.run import PEERS

EXAMPLES = (
    "netloop report model.onnx -o report.html",
    "netloop report model.onnx --values --shapes x:2x3 --compare onnxruntime,reference",
    "netloop report model.onnx --versus model.plan -o difference.html",
)

REPORT = ".html"
"""The suffix of reports."""


def add_to(commands: Any) -> None:
    """Add the command to a command line."""
    more = "The page is one file, which loads nothing from elsewhere."
    parser = arguments.add_command(commands, "report", EXAMPLES, more)
    says = f"{arguments.MODEL}; with --versus, also a report (.html)"
    parser.add_argument("model", type=_model_or_report, metavar="MODEL", help=says)
    parser.add_argument("-o", "--output", type=Path, default=Path("report.html"), metavar="FILE", help="the page")
    says = "run the model too, on random inputs if there are no others, and show all values and times"
    parser.add_argument("--values", action="store_true", help=says)
    arguments.add_inputs(parser)
    arguments.add_precision(parser)
    arguments.add_device(parser)
    says = "compare every tensor of the run with others: onnxruntime, openvino, reference"
    parser.add_argument("--compare", type=arguments.listed_in(PEERS), default=[], metavar="NAMES", help=says)
    says = "show what differs in another model or report, side by side: layers, strategies of loops, sizes and times"
    parser.add_argument("--versus", type=_model_or_report, metavar="FILE", help=says)
    parser.set_defaults(run=run)


def _model_or_report(text: str) -> Path:
    """The path of a model or of a report."""
    return Path(text) if text.lower().endswith(REPORT) else arguments.model_path(text)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    if args.versus is not None:
        return _difference(args)
    if _is_report(args.model):
        raise Misuse(f"{str(args.model)!r} is a report; give --versus another one or a model")
    network = models.load(args.model, args.shapes)
    inputs, loops = _inputs(args, network)
    with status(f"writing {args.output}"):
        trt.report(_shown(args, args.model, network), args.output, inputs, args.compare)
    said = f"{args.output}: {models.counted(network.num_layers, 'layer')}"
    print(said, *on_demand.iterations.lines_of(loops), sep="\n")
    return 0


def _is_report(path: Path) -> bool:
    return path.suffix.lower() == REPORT


def _inputs(args: argparse.Namespace, network: trt.INetworkDefinition) -> tuple[dict[str, Any] | None, list[Any]]:
    """The arrays of the run and the iterations of its loops; None without a run."""
    if not (args.values or args.inputs or args.compare):
        return None, []
    inputs = on_demand.inputs.arrays_for(network, args.inputs, args.shapes, args.seed, args.ranges)
    return inputs, on_demand.iterations.counted(network, inputs, args.max_trips)


def _shown(
    args: argparse.Namespace, path: Path, network: trt.INetworkDefinition
) -> trt.INetworkDefinition | trt.ICudaEngine:
    # the page of a network may be that of one with errors, of which there is no engine
    return models.engine(path, network, no_tf32=True) if args.no_tf32 else network


def _difference(args: argparse.Namespace) -> int:
    """Write the page of two models or reports."""
    if args.compare:
        raise Misuse("--compare is about the numbers of one model; leave out either it or --versus")
    paths, inputs, sides = (args.model, args.versus), None, list[Any]()
    for path in paths:
        if _is_report(path):
            sides.append(_existing(path))
            continue
        network = models.load(path, args.shapes)
        arrays, _ = _inputs(args, network)
        # both sides get the same numbers
        inputs = inputs or arrays
        sides.append(_shown(args, path, network))
    with status(f"writing {args.output}"):
        try:
            trt.report_difference(sides[0], sides[1], args.output, inputs)
        except ValueError as error:
            raise Misuse(str(error)) from error
    print(f"{args.output}: {args.model} and {args.versus} side by side")
    return 0


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise Misuse(f"there is no file {str(path)!r}")
    return path
