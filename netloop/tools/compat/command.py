"""``python -m netloop.compat SCRIPT``: run a TensorRT script or notebook without a GPU."""

import json
import runpy
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from netloop.tools.compat import install

USAGE = "usage: python -m netloop.compat SCRIPT.py|NOTEBOOK.ipynb [ARGUMENT ...], or -m MODULE [ARGUMENT ...]"


def main(arguments: list[str]) -> int:
    """Run what the arguments name, which are then those of the script; 2 if they name nothing."""
    if arguments[:1] == ["-m"] and len(arguments) > 1:
        install()
        sys.argv = arguments[1:]
        sys.path.insert(0, "")
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return 0
    if not arguments or not Path(arguments[0]).is_file():
        print(f"there is no file {arguments[0]!r}" if arguments else USAGE, file=sys.stderr)
        return 2
    install()
    sys.argv = arguments
    sys.path.insert(0, str(Path(arguments[0]).resolve().parent))
    if arguments[0].endswith(".ipynb"):
        run_notebook(Path(arguments[0]))
    else:
        runpy.run_path(arguments[0], run_name="__main__")
    return 0


def run_notebook(path: Path) -> None:
    """Run the cells of a notebook in order, without lines for the notebook's own shell (``%`` and ``!``)."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    lines = [line for cell in cells if cell["cell_type"] == "code" for line in "".join(cell["source"]).splitlines()]
    with TemporaryDirectory() as folder:
        script = Path(folder, f"{path.stem}.py")
        kept = (line for line in lines if not line.lstrip().startswith(("%", "!")))
        script.write_text("\n".join(kept), encoding="utf-8")
        runpy.run_path(str(script), run_name="__main__")
