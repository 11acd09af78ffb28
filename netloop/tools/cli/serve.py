"""``netloop serve``: a model behind the V2 protocol, or a folder for Triton."""

from __future__ import annotations

import argparse
from contextlib import closing
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import netloop as trt
from netloop.tools.cli import arguments, models, on_demand
from netloop.tools.cli.failures import Misuse
from netloop.tools.cli.progress import status
from netloop.tools.cli.verbosity import note

EXAMPLES = ("netloop serve model.onnx --triton models --sizes 1,16",)

SEQUENCES, REQUESTS = 1024, 32
"""The default numbers of slots: states are small, and the iterations of a loop are made for all slots."""
LISTENING = "netloop.tools.serve.listening"
LAST_PORT = 65535
MEBIBYTE, MILLISECOND = 1 << 20, 1e-3


def add_to(commands: Any) -> None:
    """Add the command to a command line."""
    more = "Without --triton, it is served until Ctrl-C: pip install 'netloop[serve]'."
    parser = arguments.add_command(commands, "serve", EXAMPLES, more)
    arguments.add_model(parser)
    arguments.add_device(parser)
    parser.add_argument("--name", type=str, metavar="NAME", help="the model's name; by default that of its file")
    arguments.add_precision(parser)
    says = "the inputs that are states, each with the output that is its next value: h0=h0n,c0=c0n"
    parser.add_argument("--states", type=states, default={}, metavar="PAIRS", help=says)
    says = (
        "shapes of inputs with open lengths: x:1x128,n:scalar. With --states those of one step, whose open lengths "
        "are 1 without it; else those for which programs are compiled before the first request. Those of the arguments "
        "of a JAX function may be open, as x:batchx128"
    )
    parser.add_argument("--shapes", type=arguments.shapes, default={}, metavar="SHAPES", help=says)
    says = "the inputs that are the same for all rows, as limit,mask; requests with equal ones share a call"
    parser.add_argument("--shared", type=lambda text: text.split(","), default=[], metavar="NAMES", help=says)
    says = (
        "the numbers of rows, or of steps of sequences, for which programs are compiled (1,4,16,64); 0 for one request "
        "at a time, as models are served that have no rows"
    )
    parser.add_argument("--sizes", type=sizes, default=[1, 4, 16, 64], metavar="NUMBERS", help=says)
    says = "run the iterations of the model's loop for many requests at once, and stream the rows"
    parser.add_argument("--stream", action="store_true", help=says)
    says = "the largest number of sequences with a state (1024), or of requests in the loop (32)"
    parser.add_argument("--slots", type=arguments.natural, metavar="N", help=says)
    says = "the largest number of requests that wait; one more is refused (1024, and 4096 steps)"
    parser.add_argument("--queue", type=arguments.natural, metavar="N", help=says)
    says = "the seconds after which a request is not run any more; without it, there is no limit"
    parser.add_argument("--timeout", type=arguments.duration, metavar="SECONDS", help=says)
    says = "the seconds after its latest step in which a sequence loses its state; without it, never"
    parser.add_argument("--idle", type=arguments.duration, metavar="SECONDS", help=says)
    says = "the milliseconds that a call waits for more requests after the first (0)"
    parser.add_argument("--delay", type=arguments.milliseconds, default=0.0, metavar="MS", help=says)
    says = "the address to listen at (%(default)s); 0.0.0.0 is all of this machine, for every client that reaches it"
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help=says)
    says = "the port of HTTP (%(default)s); 0 for any that is free"
    parser.add_argument("--port", type=port, default=8080, metavar="N", help=says)
    says = "the port of gRPC (%(default)s); 0 for any that is free"
    parser.add_argument("--grpc-port", type=port, default=8081, metavar="N", help=says)
    says = "the largest request, in MiB (%(default)s)"
    parser.add_argument("--max-body", type=arguments.natural, default=256, metavar="N", help=says)
    says = "only write the model into a repository of Triton"
    parser.add_argument("--triton", type=Path, metavar="FOLDER", help=says)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    if args.stream and (args.states or args.triton):
        raise Misuse("--stream is for a whole loop, without --states, and not for Triton's python backend")
    if args.triton and args.shared:
        raise Misuse("--shared is not for Triton, whose batcher joins all inputs")
    if not args.triton:
        for name in ("uvicorn", "grpc"):
            if find_spec(name) is None:
                raise ModuleNotFoundError(f"{name} is not installed: pip install 'netloop[serve]'", name=name)
    try:
        return write(args) if args.triton else serve(args)
    except ValueError as error:  # a name that the network has not
        raise Misuse(str(error)) from error


def write(args: argparse.Namespace) -> int:
    """Write the model into a repository of Triton; return the exit status."""
    options: dict[str, Any] = {
        "states": args.states,
        "shapes": shapes_of(args),
        "sizes": args.sizes,
        "device": args.device,
    }
    options |= {"slots": args.slots or SEQUENCES, "delay": args.delay * MILLISECOND}
    options |= {} if args.idle is None else {"idle": args.idle}
    folder = trt.serve.write_repository(engine_of(args), args.triton, name_of(args), **options)
    print(f"{folder}: a model for tritonserver --model-repository {args.triton}")
    return 0


def serve(args: argparse.Namespace) -> int:
    """Serve the model, until Ctrl-C; return the exit status."""
    options: dict[str, Any] = {"timeout": args.timeout} | ({} if args.queue is None else {"queue": args.queue})
    if args.stream:
        options |= {"stream": True, "slots": args.slots or REQUESTS}
    else:
        options |= {"states": args.states, "shapes": shapes_of(args), "sizes": args.sizes, "shared": args.shared}
        options |= {"slots": args.slots or SEQUENCES, "idle": args.idle, "delay": args.delay * MILLISECOND}
    with status(f"compiling {args.model}"):
        model = on_demand.serving.ServedFile(name_of(args), lambda: engine_of(args), options, args.device)
    with closing(model.service):
        if args.sizes and isinstance(model.service, trt.serve.Server) and not model.service.sizes:
            note("one request at a time: not all inputs and outputs have rows on a first axis")
        endpoint = trt.serve.Endpoint({model.name: model}, max_body=args.max_body * MEBIBYTE)
        # which imports the packages that make a server
        import_module(LISTENING).run(endpoint, args.host, args.port, args.grpc_port, partial(ready, model.name))
    return 0


def ready(name: str, http: str, grpc: str) -> None:
    """Say where a model is served."""
    print(f"http://{http}/v2/models/{name} is ready, and over gRPC at {grpc}, until Ctrl-C", flush=True)


def shapes_of(args: argparse.Namespace) -> dict[str, arguments.Lengths]:
    """The shapes of inputs for a service; none for a JAX function, whose network has been traced with them.

    Raises:
        Misuse: a length is open.
    """
    if arguments.file_and_function(args.model)[1]:
        return {}
    for name, lengths in args.shapes.items():
        if not all(isinstance(length, int) and length >= 0 for length in lengths):
            shown = "x".join(map(str, lengths))
            raise Misuse(f"--shapes has {shown} for input {name!r}, and a service needs a number for each length")
    return args.shapes


def engine_of(args: argparse.Namespace) -> trt.ICudaEngine:
    """The engine of the model."""
    return models.engine(args.model, models.load(args.model, args.shapes), args.no_tf32)


def name_of(args: argparse.Namespace) -> str:
    """The name of the model."""
    return args.name or arguments.file_and_function(args.model)[0].stem


def port(text: str) -> int:
    """The number of a port.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    number = arguments.natural(text)
    if number > LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: these are at most {LAST_PORT}")
    return number


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
    """Positive numbers, as ``1,16,64``; none for 0.

    Raises:
        argparse.ArgumentTypeError: the text has another form.
    """
    numbers = [arguments.natural(word) for word in text.split(",")]
    if numbers == [0]:
        return []
    if 0 in numbers:
        raise argparse.ArgumentTypeError(f"{text!r} has a size of 0")
    return numbers
