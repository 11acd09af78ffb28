"""``netloop debug``: where an engine and another runtime part."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import netloop as trt
from netloop.tools.cli import arguments, models, on_demand
from netloop.tools.cli.progress import status

EXAMPLES = ("netloop debug model.onnx --shapes x:2x3", "netloop debug model.onnx --against onnxruntime")
PEERS = ("onnxruntime", "openvino", "reference")
MOST = 12
"""The most layers that are listed."""


def add_to(commands: Any) -> None:
    """Add the command to a command line."""
    more = (
        "The first tensor is that in running order, with its layer, line, iteration and index. The smallest part ends "
        "with it; --output writes the part as a model, with its inputs next to it. The exit status is 1 if there is a "
        "difference."
    )
    parser = arguments.add_command(commands, "debug", EXAMPLES, more)
    arguments.add_model(parser)
    arguments.add_inputs(parser)
    says = "the other runtime: onnxruntime, openvino or the reference, which is the default"
    parser.add_argument("--against", choices=PEERS, default="reference", help=says)
    arguments.add_tolerances(parser)
    arguments.add_precision(parser)
    arguments.add_device(parser)
    says = "write the smallest part that shows the difference: a model, of any format, and FILE.npz with its inputs"
    parser.add_argument("--output", type=arguments.model_path, metavar="FILE", help=says)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command; 1 if there is a difference."""
    kind = trt.peers.kind_of(args.against)
    network = models.load(args.model, args.shapes)
    arrays = on_demand.inputs.arrays_for(network, args.inputs, args.shapes, args.seed, args.ranges)
    loops = on_demand.iterations.counted(network, arrays, args.max_trips)
    engine = models.engine(args.model, network, args.no_tf32)
    with status(f"comparing with {args.against}"):
        tensor, text = _difference(args, engine, arrays)
    print(text, *on_demand.iterations.lines_of(loops), sep="\n")
    if tensor is None:
        return 0 if _outputs_agree(args, engine, arrays) else 1
    with status("looking for the smallest part"):
        tolerances = {"rtol": args.rtol, "atol": args.atol}
        part = trt.peers.smallest_failure(kind, engine.network, arrays, tensor, **tolerances, engine=engine)
    _report(args, part)
    return 1


def _difference(args: argparse.Namespace, engine: trt.ICudaEngine, arrays: Any) -> tuple[Any, str]:
    """The tensor that differs first, or None, and what to say about it."""
    network = engine.network
    tolerances = {"rtol": args.rtol, "atol": args.atol}
    if args.against == "reference":
        comparison = trt.compare(network, arrays, engine, **tolerances)
        difference, text = comparison.difference, str(comparison)
    else:
        kind = trt.peers.kind_of(args.against)
        difference = trt.peers.difference_from(kind, network, arrays, model=args.model, **tolerances, engine=engine)
        said = str(difference or f"no tensor differs from {args.against}")
        text = "\n".join(filter(None, [said, trt.peers.precision_note(engine)]))
    if difference is None:
        return None, text
    named = (tensor for layer in network.layers for tensor in layer.outputs if tensor.name == difference.tensor)
    return next(named), text


def _outputs_agree(args: argparse.Namespace, engine: trt.ICudaEngine, arrays: Any) -> bool:
    """Whether the outputs agree of a run in which no other tensors are outputs."""
    expected = trt.peers.peer(args.against, engine.network, args.model)(arrays)
    ours = on_demand.outputs.as_numpy(engine(arrays))
    agreements = trt.peers.agreements(ours, expected, args.rtol, args.atol, engine=engine)
    for agreement in agreements:
        if agreement.caution:
            print(agreement)
        if not agreement.agrees:
            print(f"{agreement}, when no other tensors are outputs: what they fuse makes the difference")
    return all(agreement.agrees for agreement in agreements)


def _report(args: argparse.Namespace, part: Any) -> None:
    if part is None:
        print("no part of the network differs by itself")
        return
    layers = [layer for layer in part.network.layers if not isinstance(layer, trt.IConstantLayer)]
    print(f"\nthe smallest part that differs has {models.counted(len(layers), 'layer')}, constants left out:")
    print(*(f"  {layer.where}" for layer in layers[:MOST]), sep="\n")
    if len(layers) > MOST:
        print(f"  ... and {len(layers) - MOST} more")
    print(*(f"  {value}" for value in part.found), sep="\n")
    if args.output is None:
        print("--output part.onnx would write it, and its inputs", file=sys.stderr)
        return
    models.module_of(args.output).save(part.network, args.output)
    arrays_file = Path(f"{args.output}.npz")
    on_demand.outputs.save(part.inputs, arrays_file)
    print(f"{args.output}, {arrays_file}: the part and its inputs")
