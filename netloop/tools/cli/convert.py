"""``netloop convert``: a model in another format."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
from typing import Any

import netloop as trt
from netloop.process.atomic_write import write_whole
from netloop.tools.cli import arguments, models, on_demand
from netloop.tools.cli.failures import Misuse
from netloop.tools.cli.progress import status

EXAMPLES = (
    "netloop convert model.onnx model.plan",
    "netloop convert model.onnx model.mlir --shapes x:2x3",
    "netloop convert function.py:step model.onnx --shapes x:2x3",
)
DEPLOYED = (".mlir", ".stablehlo", ".savedmodel", ".tflite", ".vmfb")
"""The suffixes that ``netloop.deploy`` writes; listed here, as importing it takes longer than printing the help."""
WEIGHTS = ".safetensors"
TARGETS = (*arguments.SUFFIXES, *DEPLOYED, WEIGHTS)


def add_to(commands: Any) -> None:
    """Add the command to a command line."""
    more = (
        "The suffixes name the formats: ONNX (.onnx), OpenVINO (.xml), plans (.plan), scripts with a function build() "
        "(.py); and as a target, StableHLO as text (.mlir), or as jax.export serializes it (.stablehlo), a folder for "
        "TensorFlow (.savedmodel), a model of LiteRT (.tflite), a module of IREE (.vmfb), and the weights alone "
        "(.safetensors). A source "
        "file.py:FUNCTION is a JAX function; its arguments have the shapes of --shapes, or are like those in the "
        "variable examples of the file, a tuple, and the variable weights names those that become weights."
    )
    parser = arguments.add_command(commands, "convert", EXAMPLES, more)
    parser.add_argument("source", type=arguments.model_path, metavar="SOURCE", help=arguments.MODEL)
    parser.add_argument("target", type=_target, metavar="TARGET", help="the file to write")
    arguments.add_shapes(parser)
    arguments.add_weights(parser)
    arguments.add_precision(parser)
    of_scripts = "the module that a script imports; for tensorrt it uses nothing that TensorRT lacks (netloop)"
    parser.add_argument("--import", dest="module", choices=["netloop", "tensorrt"], default="netloop", help=of_scripts)
    parser.set_defaults(run=run)


def _target(text: str) -> Path:
    path = Path(text)
    if path.suffix.lower() not in TARGETS:
        raise argparse.ArgumentTypeError(f"{text!r} ends in none of {', '.join(TARGETS)}")
    return path


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    suffix = args.target.suffix.lower()
    if args.no_tf32 and suffix not in (".plan", *DEPLOYED):
        raise Misuse(
            f"--noTF32 is for plans and programs: a {suffix} file says nothing about the precision of products"
        )
    network = models.load(args.source, args.shapes)
    models.set_weights(network, args.weights)
    with status(f"writing {args.target}"):
        if suffix in DEPLOYED:
            shapes = on_demand.inputs.shapes_for(network, args.shapes)
            trt.export(network, args.target, shapes=shapes, tf32=not args.no_tf32)
        elif suffix == WEIGHTS:
            trt.safetensors.save(args.target, trt.safetensors.weights_of(network))
        elif suffix == ".plan" and args.no_tf32:
            write_whole(args.target, [_plan_without_tf32(network)])
        else:
            options = {"module": args.module} if suffix == ".py" else {}
            models.module_of(args.target).save(network, args.target, **options)
    print(f"{args.target}: {models.counted(network.num_layers, 'layer')}")
    return 0


def _plan_without_tf32(network: trt.INetworkDefinition) -> Any:
    """The plan of an engine, which is not compiled here."""
    options = import_module("netloop.api.build_options").BuildOptions(tf32=False)
    return memoryview(import_module("netloop.api.engine_plan").write_plan(network, options))
