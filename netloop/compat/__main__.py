"""``python -m netloop.compat SCRIPT``: run a TensorRT script or notebook without a GPU."""

import json
import runpy
import sys
from pathlib import Path

from netloop.compat import install

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
    run_notebook(Path(arguments[0])) if arguments[0].endswith(".ipynb") else runpy.run_path(
        arguments[0], run_name="__main__"
    )
    return 0


def run_notebook(path: Path) -> None:
    """Run the cells of a notebook in order, without lines for the notebook's own shell (``%`` and ``!``)."""
    names = {"__name__": "__main__"}
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    for number, cell in enumerate(each for each in cells if each["cell_type"] == "code"):
        lines = "".join(cell["source"]).splitlines()
        text = "\n".join("" if line.lstrip().startswith(("%", "!")) else line for line in lines)
        exec(compile(text, f"{path}, cell {number}", "exec"), names)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
