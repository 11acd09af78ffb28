"""The commands that print texts: ``explain``, ``rules``, ``operators`` and ``passes``."""

import argparse
import sys
from collections.abc import Callable
from typing import Any

import netloop as trt
from netloop.diagnostics.explain import rules_page
from netloop.passes import table

Text = Callable[[argparse.Namespace], str]


def add_to(commands: Any) -> None:
    """Add the commands to a command line."""
    explain = _add(commands, "explain", "explain a code such as NL204, with examples", _explanation)
    explain.add_argument("code", metavar="CODE", help="the code of a finding")
    _add(commands, "rules", "print the texts of all codes, as a page of Markdown", lambda given: rules_page())
    says = "print which operators of ONNX or OpenVINO are loaded, as a page of Markdown"
    operators = _add(commands, "operators", says, _operators)
    operators.add_argument("format", nargs="?", choices=["onnx", "openvino"], default="onnx", help="the format (onnx)")
    _add(commands, "passes", "print what each pass does and when, as a table in Markdown", lambda given: table())


def _add(commands: Any, name: str, says: str, text: Text) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=says, description=f"{says[0].upper()}{says[1:]}.")
    parser.set_defaults(run=lambda given: _print(text, given))
    return parser


def _print(text: Text, given: argparse.Namespace) -> int:
    """Print a text; 2 if there is no such code, or the package onnx is not installed."""
    try:
        print(text(given), end="")
    except (ValueError, ModuleNotFoundError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _explanation(given: argparse.Namespace) -> str:
    return trt.explain(given.code) + "\n"


def _operators(given: argparse.Namespace) -> str:
    return trt.openvino.operators_page() if given.format == "openvino" else trt.onnx.operators_page()
