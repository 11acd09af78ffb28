"""``netloop check``: the findings for the network that a Python file builds."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import netloop as trt
from netloop.cli.python_file import Unusable, network_of

WORDS = {
    trt.Severity.ERROR: "error",
    trt.Severity.WARNING: "warning",
    trt.Severity.PORTABILITY: "portability finding",
}
"""The name of a finding of each severity."""


def add_to(commands: Any) -> None:
    """Add the command to a command line."""
    says = "print all findings for the network that a Python file builds"
    more = "The exit status is 0 without errors, 1 with errors, 2 if the file does not build a network."
    parser = commands.add_parser("check", help=says, description=f"{says[0].upper()}{says[1:]}. {more}")
    parser.add_argument("file", type=Path, metavar="FILE", help="a file with a function build() that returns a network")
    parser.add_argument("--json", action="store_true", help="print the findings as a list of JSON objects")
    parser.add_argument("--target", choices=["tensorrt"], help="treat portability findings for this target as errors")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Run the command; 1 if there are errors, 2 if there is no network."""
    try:
        network = network_of(given.file)
    except Unusable as error:
        print(error, file=sys.stderr)
        return 2
    findings = trt.check(network, given.target)
    if given.json:
        print(json.dumps([each.as_json() for each in findings], indent=2))
    else:
        print(*findings, _summary(given.file, network, findings), sep="\n")
    return 1 if _number_of(findings, trt.Severity.ERROR) else 0


def _number_of(findings: Sequence[trt.Finding], severity: trt.Severity) -> int:
    return sum(each.severity is severity for each in findings)


def _summary(file: Path, network: trt.INetworkDefinition, findings: Sequence[trt.Finding]) -> str:
    counted = [_counted(_number_of(findings, severity), word) for severity, word in WORDS.items()]
    found = ", ".join(each for each in counted if not each.startswith("0 ")) or "no findings"
    return f"{file}: {_counted(network.num_layers, 'layer')}, {found}"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" + ("s" if number != 1 else "")
