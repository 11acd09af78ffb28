"""``netloop operators``: the operators of ONNX or OpenVINO that are loaded, as a page of Markdown."""

import argparse
import sys
from typing import Any

import netloop as trt


def add_to(commands: Any) -> None:
    """Add the command to a command line."""
    says = "print which operators of ONNX or OpenVINO are loaded, as a page of Markdown"
    parser = commands.add_parser("operators", help=says, description=says[0].upper() + says[1:] + ".")
    parser.add_argument("format", nargs="?", choices=["onnx", "openvino"], default="onnx", help="the format (onnx)")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Run the command; 2 if the package onnx is not installed."""
    try:
        page = trt.openvino.operators_page() if given.format == "openvino" else trt.onnx.operators_page()
        print(page, end="")
    except ModuleNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    return 0
