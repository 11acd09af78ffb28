"""``netloop operators``: the pages of operators."""

from __future__ import annotations

import argparse
from typing import Any

import netloop as trt
from netloop.tools.cli import arguments, on_demand
from netloop.tools.cli.pages import print_page

EXAMPLES = ("netloop operators openvino",)
FORMATS = ("onnx", "openvino", "jax")


def add_to(commands: Any) -> None:
    """Add the command to a command line."""
    parser = arguments.add_command(commands, "operators", EXAMPLES)
    parser.add_argument("format", nargs="?", choices=FORMATS, default="onnx", help="the format (onnx)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    page = on_demand.jax_primitives.page if args.format == "jax" else getattr(trt, args.format).operators_page
    print_page(page())
    return 0
