"""Arguments that several commands take, and the form of their help."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from netloop.tools.cli import COMMANDS
from netloop.tools.cli.verbosity import add_verbosity
from netloop.values.checked_attributes import seconds

SUFFIXES = {".onnx": "onnx", ".xml": "openvino", ".plan": "plan", ".py": "script"}
"""The module of netloop for each format of models."""

MODEL = (
    "a model: ONNX (.onnx), OpenVINO (.xml), a plan (.plan), a file with a function build() (.py), or a JAX function "
    "in a file (.py:FUNCTION)"
)
MOST_TRIPS = 10_000
"""The iterations after which commands end a WHILE loop, which random inputs may keep from ending."""
BRACKETS = re.compile(r"\[([^][,]+),([^][,]+)\]")
"""A range in brackets."""
LENGTH = re.compile(r"\d+|-1|[a-z_]\w*", re.IGNORECASE)
Lengths = tuple[int | str, ...]
"""A shape, in which a name is an open length."""
SCALAR = "scalar"
"""TensorRT's word for the shape of a number."""


def add_command(commands: Any, name: str, examples: Sequence[str], more: str = "") -> argparse.ArgumentParser:
    """Add a command, whose help ends with examples."""
    says = COMMANDS[name]
    title = "examples" if len(examples) > 1 else "example"
    parser = commands.add_parser(
        name,
        help=says,
        description=f"{says[0].upper()}{says[1:]}. {more}".strip(),
        epilog="\n  ".join([f"{title}:", *examples]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_verbosity(parser)
    return parser


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the argument for a model."""
    parser.add_argument("model", type=model_path, metavar="MODEL", help=MODEL)


def add_weights(parser: argparse.ArgumentParser) -> None:
    """Add the argument for weights that replace those of a model."""
    says = "arrays that replace weights of the model, by the names of its initializers (.safetensors)"
    parser.add_argument("--weights", type=Path, metavar="FILE", help=says)


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for the inputs of a model."""
    parser.add_argument(
        "--inputs", "--loadInputs", dest="inputs", nargs="+", default=[], metavar="INPUT", help=(
            "what the inputs are: NAME=VALUE with a number or a list, as limit=20 or ids=[1,2,3]; NAME=FILE.npy; an "
            ".npz file with an array for each name; or an .npy file for the only input. Others are random"
        )
    )  # fmt: skip
    add_shapes(parser)
    says = (
        "the least and the largest random number of inputs, as limit:1:50,x:-1:1; LOW:HIGH without a name is for all. "
        "By default floats are from 0 to 1, and integers are 0 or 1 unless a loop counts to them"
    )
    parser.add_argument(
        "--range", "--val-range", dest="ranges", type=ranges, action="extend", default=[], metavar="RANGES", help=says
    )
    parser.add_argument("--seed", type=natural, default=0, metavar="N", help="the seed of random inputs (%(default)s)")
    says = "end a WHILE loop after N iterations with an error that names it (%(default)s)"
    parser.add_argument("--max-trips", type=natural, default=MOST_TRIPS, metavar="N", help=says)


def add_shapes(parser: argparse.ArgumentParser) -> None:
    """Add the argument for the shapes of inputs."""
    says = (
        "shapes of inputs, as trtexec takes them: x:1x3x224x224,n:scalar; open lengths are 1 without it. Arguments of "
        "a JAX function may have open lengths, as x:batchx4 or x:-1x4"
    )
    parser.add_argument("--shapes", type=shapes, default={}, metavar="SHAPES", help=says)


def add_profile_shapes(parser: argparse.ArgumentParser) -> None:
    """Add trtexec's arguments for the range of shapes, of which ``--shapes`` defaults to the best one."""
    for name, says in (
        ("--optShapes", "the shapes without --shapes, as trtexec takes them"),
        (
            "--minShapes",
            "the smallest shapes; without effect: netloop compiles for those of a call",
        ),
        ("--maxShapes", "the largest shapes; without effect too"),
    ):
        parser.add_argument(name, type=shapes, default={}, metavar="SHAPES", help=says)


def add_precision(parser: argparse.ArgumentParser) -> None:
    """Add the argument for the precision of products."""
    says = (
        "compute float32 products and convolutions in float32 on every device, as trtexec does then; by default GPUs "
        "round their operands to TensorFloat-32, and TPUs to bfloat16"
    )
    parser.add_argument("--noTF32", dest="no_tf32", action="store_true", help=says)


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add the argument for the device, which is JAX's default one while the command runs."""
    says = "the device to compute on, such as cpu, gpu or cuda:1; JAX's default one without it"
    parser.add_argument("--device", metavar="NAME", help=says)


def add_tolerances(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for tolerances."""
    says = (
        "the largest absolute difference of floats that agree; by default the square root of the epsilon of their type "
        "(3.5e-4 for float32), times the root mean square of the expected numbers if that is less than 1; for what "
        "follows from products that the device rounds, that of the type to which it does, 0.03 on GPUs and 0.09 on "
        "TPUs, times the root mean square"
    )
    parser.add_argument("--atol", type=tolerance, metavar="X", help=says)
    says = "what is added to it, for each float X times its size; by default the square root of the epsilon"
    parser.add_argument("--rtol", type=tolerance, metavar="X", help=says)


def model_path(text: str) -> Path:
    """The path of a model.

    Raises:
        argparse.ArgumentTypeError: the suffix is of no format.
    """
    path = Path(text)
    if file_and_function(path)[0].suffix.lower() not in SUFFIXES:
        raise argparse.ArgumentTypeError(f"{text!r} ends in none of {', '.join(SUFFIXES)}")
    return path


def file_and_function(path: Path) -> tuple[Path, str]:
    """The file and the function of ``file.py:function``; of another path, the path and no function."""
    file, colon, function = str(path).rpartition(":")
    if colon and file.lower().endswith(".py") and function.isidentifier():
        return Path(file), function
    return path, ""


def shapes(text: str) -> dict[str, Lengths]:
    """Shapes by the name of the input, as ``x:1x3x224x224,n:scalar``; a name may have colons, and quotes around it.

    A length may be -1, or a name as in ``x:batchx4``: it is open then.

    Raises:
        argparse.ArgumentTypeError: the text has another form.
    """
    return dict(_shape(word) for word in text.split(","))


def _shape(text: str) -> tuple[str, Lengths]:
    name, colon, dims = text.rpartition(":")
    lengths = [] if dims == SCALAR else dims.split("x")
    if not (colon and name and all(map(LENGTH.fullmatch, lengths))):
        raise argparse.ArgumentTypeError(f"{text!r} is no shape of an input, such as x:1x3x224x224 or n:{SCALAR}")
    return name.strip("'\""), tuple(length if length.isidentifier() else int(length) for length in lengths)


def ranges(text: str) -> list[tuple[str, tuple[float, float]]]:
    """Ranges by the name of the input, as ``n:1:50,x:-1:1``, or ``n:[1,50]`` as Polygraphy has them; a range without a
    name is for all.

    Raises:
        argparse.ArgumentTypeError: the text has another form.
    """
    return [_range(word) for word in BRACKETS.sub(r"\1:\2", text).split(",")]


def _range(text: str) -> tuple[str, tuple[float, float]]:
    name, *texts = text.rsplit(":", 2) if text.count(":") > 1 else ["", *text.split(":")]
    try:
        low, high = map(_number, texts)
    except ValueError:
        low, high = 1, 0
    if low > high:
        raise argparse.ArgumentTypeError(f"{text!r} is no range of an input, such as n:1:50 or x:-1:1")
    return name.strip("'\""), (low, high)


def _number(text: str) -> float:
    """A finite number, which is an int if it is written as one."""
    number = float(text)
    if not abs(number) < float("inf"):
        raise ValueError(text)
    return int(text) if text.lstrip("+-").isdecimal() else number


def natural(text: str) -> int:
    """A whole number, at least 0.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def positive(text: str) -> int:
    """A whole number, at least 1.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    if not natural(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def tolerance(text: str) -> float:
    """A number, at least 0.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not number >= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return number


def duration(text: str, unit: float = 1.0) -> float:
    """A number of units, each of some seconds, that ends.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    number = tolerance(text)
    try:
        seconds()(repr(text), number * unit)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return number


def milliseconds(text: str) -> float:
    """A number of milliseconds; the errors are those of ``duration``."""
    return duration(text, 1e-3)


def listed_in(choices: Sequence[str]) -> Any:
    """A function that splits a text at commas and checks that all parts are known."""

    def split(text: str) -> list[str]:
        words = text.split(",")
        for word in words:
            if word not in choices:
                raise argparse.ArgumentTypeError(f"{word!r} is none of {', '.join(choices)}")
        return words

    return split
