"""Real ONNX models in netloop and onnxruntime.

::

    python -m tests.real_models make FOLDER    makes the models that are missing
    python -m tests.real_models run FOLDER     runs those without a result, and records it
    python -m tests.real_models page           writes docs/real-models.md from the results
"""

import argparse
from pathlib import Path

from tests.real_models.make import make_all
from tests.real_models.page import write_page
from tests.real_models.records import RESULTS, Records
from tests.real_models.run import run_all
from tests.real_models.sources import NAMES


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.real_models", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["make", "run", "page"])
    parser.add_argument("folder", type=Path, nargs="?", default=Path("real_models"), help="the folder of the models")
    parser.add_argument("words", nargs="*", help="words that the names of the models have")
    parser.add_argument("--source", action="append", choices=NAMES, help="make the models of this source only")
    parser.add_argument("--seconds", type=int, default=120, help="the CPU time of a run")
    parser.add_argument("--again", action="store_true", help="run models that have a result too")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file of the results")
    given = parser.parse_args()
    if given.what == "make":
        make_all(given.folder, given.source or [], given.words)
    if given.what == "run":
        run_all(given.folder, Records(given.results), given.words, given.seconds, given.again)
    if given.what == "page":
        write_page()


if __name__ == "__main__":
    main()
