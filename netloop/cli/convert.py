"""``netloop convert``: a model in another format."""

import argparse
import sys
from pathlib import Path
from typing import Any

import netloop as trt
from netloop.cli.python_file import Unusable, network_of

SUFFIXES = {".onnx": "onnx", ".xml": "openvino", ".plan": "plan", ".py": "script"}
"""The module of netloop for each format."""


def add_to(commands: Any) -> None:
    """Add the command to a command line."""
    says = "write a model in another format"
    formats = "ONNX (.onnx), OpenVINO IR (.xml), plans (.plan), and scripts (.py) with a function build()"
    more = (
        f"The suffixes name the formats: {formats}. The exit status is 2 if the source or the target is not possible."
    )
    parser = commands.add_parser("convert", help=says, description=f"{says[0].upper()}{says[1:]}. {more}")
    parser.add_argument("source", type=_path, metavar="SOURCE", help="the file of the model")
    parser.add_argument("target", type=_path, metavar="TARGET", help="the file to write")
    of_scripts = "the module that a script imports; for tensorrt it uses nothing that TensorRT lacks (netloop)"
    parser.add_argument("--import", dest="module", choices=["netloop", "tensorrt"], default="netloop", help=of_scripts)
    parser.set_defaults(run=run)


def _path(text: str) -> Path:
    path = Path(text)
    if path.suffix not in SUFFIXES:
        raise argparse.ArgumentTypeError(f"{text!r} ends in none of {', '.join(SUFFIXES)}")
    return path


def run(given: argparse.Namespace) -> int:
    """Run the command; 2 if the source builds no network, or a package is missing."""
    try:
        network = _read(given.source)
        options = {"module": given.module} if given.target.suffix == ".py" else {}
        _format(given.target).save(network, given.target, **options)
    except (Unusable, ModuleNotFoundError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{given.target}: {network.num_layers} layers")
    return 0


def _read(path: Path) -> trt.INetworkDefinition:
    return network_of(path) if path.suffix == ".py" else _format(path).load(path)


def _format(path: Path) -> Any:
    return getattr(trt, SUFFIXES[path.suffix])
