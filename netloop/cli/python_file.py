"""The network that a Python file builds: what its function ``build()`` returns."""

import contextlib
import runpy
import sys
import traceback
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import netloop as trt

MODULE = "netloop_checked"
"""The module name of the file while it is imported: not ``__main__``, so that a script does not run."""


class Unusable(Exception):
    """The file does not build a network."""


def network_of(file: Path) -> trt.INetworkDefinition:
    """Return the network that a file builds; the output of the file goes to stderr, apart from the findings.

    Raises:
        Unusable: it does not build a network.
    """
    if not file.is_file():
        raise Unusable(f"there is no file {str(file)!r}")
    with contextlib.redirect_stdout(sys.stderr), _folder_on_path(file):
        build = _call(file, "importing it", lambda: runpy.run_path(str(file), run_name=MODULE)).get("build")
        if not callable(build):
            raise Unusable(f"{file} has no function build(); write one that returns the network")
        network = _call(file, "build()", build)
    if not isinstance(network, trt.INetworkDefinition):
        hint = "; does it end without a return?" if network is None else ""
        raise Unusable(f"build() of {file} returned {type(network).__name__}, not a network{hint}")
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
        raise Unusable(f"{shown}\n{file} does not build a network: {what} raised {type(error).__name__}") from None
