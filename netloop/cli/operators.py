"""``netloop operators``: the ONNX operators that are loaded, as a page of Markdown."""

import argparse
import sys
from typing import Any

import netloop as trt


def add_to(commands: Any) -> None:
    """Add the command to a command line."""
    says = "print which operators of ONNX are loaded, as a page of Markdown"
    parser = commands.add_parser("operators", help=says, description=says[0].upper() + says[1:] + ".")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Run the command; 2 if the package onnx is not installed."""
    try:
        print(trt.onnx.operators_page(), end="")
    except ModuleNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    return 0
