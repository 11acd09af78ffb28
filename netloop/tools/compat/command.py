"""``python -m netloop.compat SCRIPT``: run a TensorRT script or notebook without a GPU."""

import json
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType

from netloop.tools.compat import install
from netloop.tools.compat.versions import VERSIONS
from netloop.tools.compat.versions.detection import NEWEST, detected

USAGE = """\
usage: python -m netloop.compat [--tensorrt VERSION] SCRIPT.py|NOTEBOOK.ipynb [ARGUMENT ...]
       python -m netloop.compat [--tensorrt VERSION] -m MODULE [ARGUMENT ...]

VERSION is the major version of TensorRT that the script is written for: 7 to 11.
By default it is the oldest whose names the script has, and 11 if it has none of older versions."""

OPTION = "--tensorrt"


def main(arguments: list[str]) -> int:
    """Run what the arguments name, which are then those of the script; 2 if they name nothing."""
    if arguments[:1] in (["-h"], ["--help"]):
        print(USAGE)
        return 0
    version = None
    if arguments and arguments[0].partition("=")[0] == OPTION:
        option, _, version = arguments.pop(0).partition("=")
        version = version or (arguments.pop(0) if arguments else "")
        if version not in map(str, VERSIONS):
            print(f"{option} is the major version of TensorRT, one of {VERSIONS}, and not {version!r}", file=sys.stderr)
            return 2
    sys.excepthook = from_the_script(sys.excepthook)
    if arguments[:1] == ["-m"] and len(arguments) > 1:
        install(int(version or NEWEST))
        sys.argv = arguments[1:]
        sys.path.insert(0, "")
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return 0
    if not arguments or not Path(arguments[0]).is_file():
        print(f"there is no file {arguments[0]!r}" if arguments else USAGE, file=sys.stderr)
        return 2
    _run(arguments, None if version is None else int(version))
    return 0


Hook = Callable[[type[BaseException], BaseException, TracebackType | None], object]


def from_the_script(hook: Hook) -> Hook:
    """A hook for errors that nothing catches, whose tracebacks begin in the script, and not where it is run."""

    def shown(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        while traceback is not None and _runs_scripts(traceback.tb_frame.f_code.co_filename):
            traceback = traceback.tb_next
        hook(kind, error.with_traceback(traceback), traceback)

    return shown


def _runs_scripts(file: str) -> bool:
    return "runpy" in file or file in (__file__, getattr(sys.modules["__main__"], "__file__", None))


def _run(arguments: list[str], version: int | None) -> None:
    """Run a script or notebook as one for a version of TensorRT; None for the one of its names."""
    with TemporaryDirectory() as folder:
        script = Path(arguments[0])
        if arguments[0].endswith(".ipynb"):
            script = script_of_notebook(script, Path(folder))
        install(_version_of(script) if version is None else version)
        sys.argv = arguments
        sys.path.insert(0, str(Path(arguments[0]).resolve().parent))
        runpy.run_path(
            str(script.absolute()), run_name="__main__"
        )  # as Python itself has it: scripts may change folder


def _version_of(script: Path) -> int:
    """The version of TensorRT that a script is written for; a line on standard error says it if it is an older one."""
    version, names = detected(script)
    if names:
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        reason = f"because of {', '.join(names[:3])}{more}"
        print(f"netloop.compat: {script.name} runs as for TensorRT {version}, {reason}; {OPTION} says otherwise",
              file=sys.stderr)  # fmt: skip
    return version


def script_of_notebook(path: Path, folder: Path) -> Path:
    """A script with the cells of a notebook in order, without lines for its own shell (``%`` and ``!``)."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    lines = [line for cell in cells if cell["cell_type"] == "code" for line in "".join(cell["source"]).splitlines()]
    script = folder / f"{path.stem}.py"
    kept = (line for line in lines if not line.lstrip().startswith(("%", "!")))
    script.write_text("\n".join(kept), encoding="utf-8")
    return script
