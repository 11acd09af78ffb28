"""``netloop check``: the findings for a model."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import netloop as trt
from netloop.tools.cli import arguments, models
from netloop.tools.cli.colours import coloured
from netloop.tools.cli.models import counted

EXAMPLES = ("netloop check model.py --target tensorrt", "netloop check model.onnx --json")
WORDS = {"error": "error", "warning": "warning", "portability": "portability finding"}
"""The name of findings of each severity."""


def add_to(commands: Any) -> None:
    """Add the command to a command line."""
    more = "The exit status is 0 without errors, 1 with errors, 2 if a file does not build a network."
    parser = arguments.add_command(commands, "check", EXAMPLES, more)
    arguments.add_model(parser)
    parser.add_argument("--json", action="store_true", help="print the findings as a list of JSON objects")
    parser.add_argument("--target", choices=["tensorrt"], help="treat portability findings for this target as errors")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command; 1 if there are errors."""
    layers, findings = _findings(args)
    if args.json:
        print(json.dumps([finding.as_json() for finding in findings], indent=2))
    else:
        print(
            *(coloured(finding, sys.stdout) for finding in findings), _summary(args.model, layers, findings), sep="\n"
        )
    return 1 if any(finding.severity is trt.FindingSeverity.ERROR for finding in findings) else 0


def _findings(args: argparse.Namespace) -> tuple[int | None, Sequence[trt.Finding]]:
    """The number of layers, None for a model that cannot be imported, and the findings."""
    try:
        network = models.load(args.model)
    except (trt.ModelError, trt.FileFormatError) as error:
        return None, error.findings
    return network.num_layers, trt.check(network, args.target)


def _summary(model: Path, layers: int | None, findings: Sequence[trt.Finding]) -> str:
    severities = [finding.severity.value for finding in findings]
    numbers = [counted(severities.count(name), word) for name, word in WORDS.items() if name in severities]
    what = "cannot be imported" if layers is None else counted(layers, "layer")
    return f"{model}: {what}, {', '.join(numbers) or 'no findings'}"
