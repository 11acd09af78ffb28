"""``netloop serve``: a model behind the V2 protocol, by MLServer, or a folder for MLServer or Triton."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import netloop as trt
from netloop.process.atomic_write import write_whole
from netloop.tools.cli import arguments, models
from netloop.tools.cli.failures import Misuse
from netloop.tools.cli.progress import status

EXAMPLES = ("netloop serve model.onnx --write served", "netloop serve model.onnx --triton models --sizes 1,16")

SEQUENCES, REQUESTS = 1024, 32
"""The default numbers of slots: states are small, and the iterations of a loop are made for all slots."""

START = "from mlserver.cli import main; main()"


def add_to(commands: Any) -> None:
    """Add the command to a command line."""
    more = "Without --write and --triton, MLServer serves it until Ctrl-C: pip install 'netloop[serve]'."
    parser = arguments.add_command(commands, "serve", EXAMPLES, more)
    arguments.add_model(parser)
    arguments.add_device(parser)
    parser.add_argument("--name", type=str, metavar="NAME", help="the model's name; by default that of its file")
    arguments.add_precision(parser)
    says = "the inputs that are states, each with the output that is its next value: h0=h0n,c0=c0n"
    parser.add_argument("--states", type=states, default={}, metavar="PAIRS", help=says)
    says = "the numbers of rows, or of steps of sequences, for which programs are compiled (1,4,16,64)"
    parser.add_argument("--sizes", type=sizes, default=[1, 4, 16, 64], metavar="NUMBERS", help=says)
    says = "run the iterations of the model's loop for many requests at once, and stream the rows (MLServer only)"
    parser.add_argument("--stream", action="store_true", help=says)
    says = "the largest number of sequences with a state (1024), or of requests in the loop (32)"
    parser.add_argument("--slots", type=arguments.natural, metavar="N", help=says)
    parser.add_argument("--port", type=arguments.natural, default=8080, metavar="N", help="of HTTP (%(default)s)")
    says = "of gRPC (%(default)s)"
    parser.add_argument("--grpc-port", type=arguments.natural, default=8081, metavar="N", help=says)
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="only write the folder that MLServer starts with")
    parser.add_argument(
        "--triton", type=Path, metavar="FOLDER", help="only write the model into a repository of Triton"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    if args.stream and (args.states or args.triton):
        raise Misuse("--stream is for a whole loop, without --states, and not for Triton's python backend")
    if not (args.write or args.triton) and find_spec("mlserver") is None:
        raise ModuleNotFoundError("MLServer is not installed: pip install 'netloop[serve]'", name="mlserver")
    engine = models.engine(args.model, models.load(args.model), args.no_tf32)
    try:
        return served(engine, args.name or args.model.stem, args)
    except ValueError as error:  # a name that the network has not
        raise Misuse(str(error)) from error


def served(engine: trt.ICudaEngine, name: str, args: argparse.Namespace) -> int:
    """Write an engine where the arguments say so, or serve it; return the exit status."""
    if args.triton:
        folder = trt.serve.write_repository(engine, args.triton, name, device=args.device, **options(args))
        print(f"{folder}: a model for tritonserver --model-repository {args.triton}")
    if args.write:
        write(engine, args.write, name, args)
        print(f"{args.write}: mlserver start {args.write}")
    return 0 if args.triton or args.write else start(engine, name, args)


def start(engine: trt.ICudaEngine, name: str, args: argparse.Namespace) -> int:
    """Serve an engine by MLServer, until it ends."""
    with tempfile.TemporaryDirectory(prefix="netloop-serve.") as folder:
        write(engine, Path(folder), name, args)
        with status(f"serving {name} at port {args.port}"):
            return subprocess.run([sys.executable, "-c", START, "start", folder], check=False).returncode


def write(engine: trt.ICudaEngine, folder: Path, name: str, args: argparse.Namespace) -> None:
    """Write the plan of an engine, and MLServer's settings.

    Raises:
        NetworkError, ValueError: the engine cannot be served so.
        OSError: a file cannot be written.
    """
    extra = options(args)
    # refused now, and not by the server
    if args.stream:
        trt.SlotEngine(engine, slots=extra["slots"])
    else:
        (trt.serve.Sequences if args.states else trt.serve.Server)(engine, **extra).close()
    folder.mkdir(parents=True, exist_ok=True)
    engine.save(folder / "model.plan")
    # the server's process has another default device
    placed = {"device": args.device} if args.device else {}
    parameters = {"uri": "model.plan", "extra": {**extra, **placed}}
    model = {"name": name, "implementation": "netloop.tools.serve.mlserver.NetloopRuntime", "parameters": parameters}
    # MLServer's compression and metrics would keep the rows of a stream back
    streams = {"gzip_enabled": False, "metrics_endpoint": None} if args.stream else {}
    settings = {"http_port": args.port, "grpc_port": args.grpc_port, **streams}
    for file, written in (
        ("model-settings.json", model),
        # the states of sequences are in one process
        ("settings.json", {"parallel_workers": 0, **settings}),
    ):
        write_whole(folder / file, [f"{json.dumps(written, indent=2)}\n".encode()])


def options(args: argparse.Namespace) -> dict[str, Any]:
    """The options of the service that the arguments name."""
    if args.stream:
        return {"stream": True, "slots": args.slots or REQUESTS}
    states = {"states": args.states, "slots": args.slots or SEQUENCES} if args.states else {}
    return {"sizes": args.sizes, **states}


def states(text: str) -> dict[str, str]:
    """Pairs of inputs and outputs, as ``h0=h0n,c0=c0n``.

    Raises:
        argparse.ArgumentTypeError: the text has another form.
    """
    pairs = [word.partition("=") for word in text.split(",")]
    if not all(before and after for before, _, after in pairs):
        raise argparse.ArgumentTypeError(f"{text!r} are no states and their next values, such as h0=h0n,c0=c0n")
    return {before: after for before, _, after in pairs}


def sizes(text: str) -> list[int]:
    """Positive numbers, as ``1,16,64``.

    Raises:
        argparse.ArgumentTypeError: the text has another form.
    """
    numbers = [arguments.natural(word) for word in text.split(",")]
    if 0 in numbers:
        raise argparse.ArgumentTypeError(f"{text!r} has a size of 0")
    return numbers
