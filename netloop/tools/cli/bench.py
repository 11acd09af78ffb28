"""``netloop bench``: how long a model runs, in turns with other runtimes."""

from __future__ import annotations

import argparse
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import netloop as trt
from netloop.tools.cli import arguments, models, on_demand
from netloop.tools.cli.progress import status

EXAMPLES = (
    "netloop bench model.onnx --shapes x:2x3 --iterations 20 --duration 0.2 --against onnxruntime",
    "netloop bench model.onnx --shapes x:2x3 --duration 0.2 --tune --timingCacheFile times",
)
PEERS = ("onnxruntime", "openvino")


def add_to(commands: Any) -> None:
    """Add the command to a command line."""
    more = (
        "Flags that trtexec has mean what they mean there. A time is that of a call from arrays of numpy to arrays of "
        "numpy. With other runtimes, each turn measures one call of each, so that what else the machine does meets all."
    )
    parser = arguments.add_command(commands, "bench", EXAMPLES, more)
    model = parser.add_mutually_exclusive_group(required=True)
    model.add_argument("model", nargs="?", type=arguments.model_path, metavar="MODEL", help=arguments.MODEL)
    says = "the model, as trtexec takes it"
    model.add_argument("--onnx", "--loadEngine", dest="file", type=arguments.model_path, metavar="FILE", help=says)
    arguments.add_inputs(parser)
    arguments.add_weights(parser)
    arguments.add_profile_shapes(parser)
    arguments.add_precision(parser)
    arguments.add_device(parser)
    parser.add_argument(
        "--iterations", type=arguments.natural, default=10, metavar="N", help="the fewest calls (%(default)s)"
    )
    parser.add_argument("--duration", type=arguments.duration, default=3.0, metavar="S",
                        help="the fewest seconds of all calls of a runtime (%(default)s)")  # fmt: skip
    parser.add_argument("--warmUp", type=arguments.milliseconds, default=200.0, metavar="MS",
                        help="the milliseconds of calls before the first that counts (%(default)s)")  # fmt: skip
    parser.add_argument("--percentile", type=_percentiles, default=[90.0, 95.0, 99.0], metavar="P,...",
                        help="the percentiles of the times to print (90,95,99)")  # fmt: skip
    says = "measure these too, and compare: onnxruntime, openvino"
    parser.add_argument("--against", type=arguments.listed_in(PEERS), default=[], metavar="NAMES", help=says)
    says = (
        "measure also how many calls a second N callers get answered, of which a server runs those that wait together"
    )
    parser.add_argument("--callers", type=arguments.positive, default=0, metavar="N", help=says)
    says = "choose the variants of passes by timing them here with these inputs, and print what was timed"
    parser.add_argument("--tune", action="store_true", help=says)
    says = "the variants that were fastest in earlier runs, which are not timed again; --tune adds to it"
    parser.add_argument("--timingCacheFile", type=Path, metavar="FILE", help=says)
    parser.add_argument("--exportTimes", type=Path, metavar="FILE", help="write the time of each call as JSON")
    parser.add_argument("--exportProfile", type=Path, metavar="FILE",
                        help="write the times of the model, of the phases of its compilation and of each layer, as "
                        "JSON")  # fmt: skip
    says = "print the time of each layer, from JAX's profiler in calls after those that count"
    parser.add_argument("--dumpProfile", action="store_true", help=says)
    says = "write the engine as a plan, which --loadEngine, netloop run and netloop.load read"
    parser.add_argument("--saveEngine", type=Path, metavar="FILE", help=says)
    parser.set_defaults(run=run)


def _percentiles(text: str) -> list[float]:
    numbers = [arguments.tolerance(word) for word in text.split(",")]
    if not all(number <= 100 for number in numbers):
        raise argparse.ArgumentTypeError(f"{text!r} has a number above 100")
    return numbers


def run(args: argparse.Namespace) -> int:
    """Run the command; 1 if another runtime fails."""
    args.model = args.model or args.file
    args.shapes = args.shapes or args.optShapes or args.maxShapes or args.minShapes
    network = models.load(args.model, args.shapes)
    models.set_weights(network, args.weights)
    arrays = on_demand.inputs.arrays_for(network, args.inputs, args.shapes, args.seed, args.ranges)
    loops = on_demand.iterations.counted(network, arrays, args.max_trips)
    tuning = {"tune": args.tune and arrays, "timing_cache": args.timingCacheFile}
    engine = models.engine(args.model, network, args.no_tf32, args.weights, **tuning)
    if args.saveEngine is not None:
        engine.save(args.saveEngine)
    for trial in engine.trials:
        print(f"timed {trial}")
    calls = {"netloop": lambda: on_demand.outputs.as_numpy(engine(arrays))}
    for name in args.against:
        call = _call(name, args, network, arrays)
        calls |= {} if call is None else {name: call}
    timing = on_demand.timing
    with status(f"measuring {', '.join(calls)}"):
        times = timing.in_turns(calls, args.iterations, args.duration, args.warmUp / 1e3)
    print(*on_demand.iterations.lines_of(loops), *timing.lines_of(times, args.percentile), sep="\n")
    if args.callers:
        with status(f"measuring {args.callers} callers"):
            answered = on_demand.callers.throughput(engine, arrays, args.callers, args.duration)
        print(on_demand.callers.line_of(answered, args.callers))
    if args.exportTimes is not None:
        _write(args.exportTimes, timing.as_records(times))
    layers = engine.layer_times(arrays) if args.dumpProfile or args.exportProfile is not None else {}
    if args.dumpProfile:
        print(*timing.lines_of_layers(layers), sep="\n")
    if args.exportProfile is not None:
        first, *others = timing.profile(network.name, times["netloop"], engine.profile(arrays), layers)
        _write(args.exportProfile, [{**first, "loops": on_demand.iterations.records_of(loops)}, *others])
    return 0 if len(calls) == 1 + len(set(args.against)) else 1


def _call(name: str, args: argparse.Namespace, network: trt.INetworkDefinition, arrays: Any) -> Any:
    """A call of another runtime; None, with the reason on stderr, if it cannot run the model."""
    try:
        with status(f"loading {args.model} in {name}"):
            peer = trt.peers.peer(name, network, models.file_of_peers(args))
            peer(arrays)
    except (trt.ExecutionError, trt.NetworkError) as error:
        print(error, file=sys.stderr)
        return None
    return lambda: peer(arrays)


def _write(path: Path, document: Any) -> None:
    import_module("netloop.process.atomic_write").write_whole(path, [json.dumps(document, indent=1).encode()])
