"""The network that a Python file builds: what its function ``build()`` returns, or what is in the plan it returns."""

from __future__ import annotations

import contextlib
import runpy
import sys
import traceback
from collections.abc import Generator
from pathlib import Path
from typing import Any

import netloop as trt
from netloop.tools.cli.failures import Misuse

MODULE = "netloop_checked"
"""The module name of the file while it is imported: not ``__main__``, so that a script does not run."""


class Unusable(Misuse):
    """The file does not build a network."""


def network_of(file: Path) -> trt.INetworkDefinition:
    """Return the network that a file builds; the output of the file goes to stderr, apart from the findings.

    The function may return a plan too.

    Raises:
        Unusable: it does not build a network.
    """
    build = names_in(file).get("build")
    if not callable(build):
        raise Unusable(f"{file} has no function build(); write one that returns the network")
    with running(file, "build()"):
        network: Any = build()
    if isinstance(network, trt.IHostMemory):  # scripts for TensorRT build plans
        return trt.plan.loads(bytes(network))
    if not isinstance(network, trt.INetworkDefinition):
        hint = "; does it end without a return?" if network is None else ""
        raise Unusable(f"build() of {file} returned {type(network).__name__}, not a network or plan{hint}")
    return network


def names_in(file: Path) -> dict[str, Any]:
    """Return what a file defines, by name.

    Raises:
        Unusable: it cannot be imported.
    """
    if not file.is_file():
        raise Unusable(f"there is no file {str(file)!r}")
    with running(file, "importing it"):
        return runpy.run_path(str(file), run_name=MODULE)


@contextlib.contextmanager
def running(file: Path, what: str) -> Generator[None]:
    """Run functions of the user's file; the traceback of an exception begins at the user's own code.

    Imports from the folder of the file work, as when Python runs the file. An error of netloop stays as it is.
    """
    path = list(sys.path)
    sys.path.insert(0, str(file.parent.resolve()))
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except (Exception, SystemExit) as error:
        if isinstance(error, trt.ModelError):
            raise
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename != str(file):
            frames = frames.tb_next
        shown = "".join(traceback.format_exception(type(error), error, frames))
        raise Unusable(f"{shown}\n{file} does not build a network: {what} raised {type(error).__name__}") from None
    finally:
        sys.path[:] = path
