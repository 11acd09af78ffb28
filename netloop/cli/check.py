"""``netloop check``: the findings for the network that a Python file builds."""

import argparse
import contextlib
import json
import runpy
import sys
import traceback
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import netloop as trt

MODULE = "netloop_checked"
"""The module name of the file while it is imported: not ``__main__``, so that a script does not run."""

WORDS = {
    trt.FindingSeverity.ERROR: "error",
    trt.FindingSeverity.WARNING: "warning",
    trt.FindingSeverity.PORTABILITY: "portability finding",
}
"""The name of a finding of each severity."""


class _Unusable(Exception):
    """The file does not build a network."""


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
        network = _network(given.file)
    except _Unusable as error:
        print(error, file=sys.stderr)
        return 2
    findings = trt.check(network, given.target)
    if given.json:
        print(json.dumps([each.as_json() for each in findings], indent=2))
    else:
        print(*findings, _summary(given.file, network, findings), sep="\n")
    return 1 if _number_of(findings, trt.FindingSeverity.ERROR) else 0


def _number_of(findings: Sequence[trt.Finding], severity: trt.FindingSeverity) -> int:
    return sum(each.severity is severity for each in findings)


def _summary(file: Path, network: trt.INetworkDefinition, findings: Sequence[trt.Finding]) -> str:
    counted = [_counted(_number_of(findings, severity), word) for severity, word in WORDS.items()]
    found = ", ".join(each for each in counted if not each.startswith("0 ")) or "no findings"
    return f"{file}: {_counted(network.num_layers, 'layer')}, {found}"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" + ("s" if number != 1 else "")


# ---------------------------------------------------------------------------- the file


def _network(file: Path) -> trt.INetworkDefinition:
    """Return the network that a file builds; the output of the file goes to stderr, apart from the findings.

    Raises:
        _Unusable: it does not build a network.
    """
    if not file.is_file():
        raise _Unusable(f"there is no file {str(file)!r}")
    with contextlib.redirect_stdout(sys.stderr), _folder_on_path(file):
        build = _call(file, "importing it", lambda: runpy.run_path(str(file), run_name=MODULE)).get("build")
        if not callable(build):
            raise _Unusable(f"{file} has no function build(); write one that returns the network")
        network = _call(file, "build()", build)
    if not isinstance(network, trt.INetworkDefinition):
        hint = "; does it end without a return?" if network is None else ""
        raise _Unusable(f"build() of {file} returned {type(network).__name__}, not a network{hint}")
    return network


@contextlib.contextmanager
def _folder_on_path(file: Path) -> Generator[None]:
    """Allow imports from the folder of a file, as when Python runs the file."""
    path = list(sys.path)
    sys.path.insert(0, str(file.parent.resolve()))
    try:
        yield
    finally:
        sys.path[:] = path


def _call(file: Path, what: str, function: Callable[[], Any]) -> Any:
    """Call a function of the user's file; the traceback of an exception begins at the user's own code."""
    try:
        return function()
    except (Exception, SystemExit) as error:
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename != str(file):
            frames = frames.tb_next
        shown = "".join(traceback.format_exception(type(error), error, frames))
        raise _Unusable(f"{shown}\n{file} does not build a network: {what} raised {type(error).__name__}") from None
