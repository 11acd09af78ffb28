"""The command line: ``netloop COMMAND``, or ``python -m netloop COMMAND``.

Each command is a module of this package with a function ``add_to(commands)``, which adds its parser and sets the
function to run. Only the module of the command in use is imported, and none imports JAX before its function runs.
"""

import argparse
import importlib
import importlib.util
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import netloop
from netloop.process.idle_gpu import idle_gpu
from netloop.tools.cli.failures import Misuse, one_screen
from netloop.tools.cli.interrupts import interrupts_deferred, interrupts_kept
from netloop.tools.cli.verbosity import verbosity
from netloop.values.diagnostics import NetloopError, did_you_mean

COMMANDS = {
    "run": "run a model, and compare its outputs with those of other runtimes",
    "inspect": "print what is in a model: layers, loops, weights, and what passes do to it",
    "check": "print all findings for a model",
    "convert": "write a model in another format",
    "bench": "measure how long a model runs, also in other runtimes",
    "report": "write a page that shows a model: loops in boxes, types, passes, and the values of a run",
    "serve": "serve a model over HTTP and gRPC, its states included, or write it for Triton",
    "debug": "find the first tensor that differs between two runtimes, and the smallest part that shows it",
    "explain": "explain a code such as NL204, with examples",
    "operators": "print which operators of ONNX or OpenVINO, or primitives of JAX, are loaded, as a page of Markdown",
    "passes": "print what each pass does and when, as a page of Markdown",
    "rules": "print the texts of all codes, as a page of Markdown",
    "demo": "continue a text with a small LSTM, built through the loop API, and compare with the reference",
}
"""The commands, and what each does."""

MISUSED = 2
"""The exit status of a command that could not run because of an argument or a file; one that ran returns 0 or 1."""

INTERRUPTED = 128 + 2
UNREAD = 128 + 13
"""The exit statuses that shells give to programs ended by Ctrl-C, and by writing to a pipe that no one reads."""

STATUSES = """\
exit status:
  0  it ran, and found nothing wrong
  1  it ran, and found errors or differences
  2  it could not run, because of an argument, a file or a package"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status; ``argv`` are the arguments after ``netloop``."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        with interrupts_kept():
            status = _run(words)
        print(end="", flush=True)
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BrokenPipeError:
        status = UNREAD
    except (NetloopError, Misuse, ModuleNotFoundError, OSError, UnicodeEncodeError) as error:
        print(one_screen(str(error)), file=sys.stderr)
        status = MISUSED
    _drop_unwritten()
    return status


def parser_for(command: str) -> argparse.ArgumentParser:
    """The parser of the command line, with the arguments of one command."""
    more = f"{STATUSES}\n\n'netloop COMMAND --help' has the arguments of a command, and an example."
    parser = argparse.ArgumentParser(
        prog="netloop",
        description="TensorRT's network builder on every device of JAX.",
        epilog=more,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show program's version number and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, says in COMMANDS.items():
        if name == command:
            importlib.import_module(f"netloop.tools.cli.{name}").add_to(commands)
        else:
            commands.add_parser(name, help=says)
    return parser


class _Version(argparse.Action):
    """Prints the version, and a GPU that programs will not run on."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(f"netloop {netloop.__version__}")
        finding = idle_gpu()
        if finding is not None:
            print(one_screen(f"warning: {finding}"), file=sys.stderr)
        parser.exit()


def _command(words: Sequence[str]) -> str:
    """The command among some arguments; the empty string if there is none."""
    text = next((word for word in words if not word.startswith("-")), "")
    # argcomplete passes the line that is typed
    return os.environ["COMP_LINE"].partition(" ")[2].split(" ")[0] if _is_completing() else text


def _run(words: Sequence[str]) -> int:
    command = _command(words)
    parser = parser_for(command)
    _complete(parser)
    if command and command not in COMMANDS:
        hint = did_you_mean(command, COMMANDS) or f"there are {', '.join(COMMANDS)}"
        raise Misuse(f"netloop has no command {command!r}; {hint}")
    namespace = parser.parse_args(words)
    if not hasattr(namespace, "run"):
        parser.print_help()
        return 0
    with interrupts_deferred():
        dir(netloop)  # imports JAX
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        for name in _peers_of(namespace):
            netloop.peers.kind_of(name)  # before JAX runs: importing OpenVINO forks, and a package may be missing
        with verbosity(namespace.verbosity), _on_device(getattr(namespace, "device", None)):
            return namespace.run(namespace)


def _peers_of(namespace: argparse.Namespace) -> list[str]:
    """The other runtimes that a command compares with."""
    against: str | list[str] = getattr(namespace, "against", [])
    return [*getattr(namespace, "compare", []), *([against] if isinstance(against, str) else against)]


def _on_device(name: str | None) -> AbstractContextManager[Any]:
    """The context in which a device is JAX's default one, for engines and for whatever else a command runs."""
    if name is None:
        return nullcontext()
    return importlib.import_module("netloop.compiler.placement").default_on(name)


def _show_warning(message: Warning | str, category: type[Warning], *_: Any) -> None:
    """Show what netloop warns of; what other packages warn of is for programmers."""
    if category.__module__.startswith("netloop"):
        print(one_screen(f"warning: {message}"), file=sys.stderr)


def _is_completing() -> bool:
    return "_ARGCOMPLETE" in os.environ and "COMP_LINE" in os.environ


def _complete(parser: argparse.ArgumentParser) -> None:
    """Answer the shell and end the process, if the shell asks how an argument goes on."""
    if _is_completing() and importlib.util.find_spec("argcomplete") is not None:
        importlib.import_module("argcomplete").autocomplete(parser)


def _drop_unwritten() -> None:
    """Drop output that cannot be written, which Python would otherwise try again at exit, with a traceback."""
    try:
        print(end="", flush=True)
    except OSError:
        with open(os.devnull, "w") as nothing:
            os.dup2(nothing.fileno(), sys.stdout.fileno())
