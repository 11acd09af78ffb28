"""Real ONNX models in netloop and onnxruntime.

::

    python -m tests.real_models make FOLDER    makes the models that are missing
    python -m tests.real_models run FOLDER     runs those without a result
    python -m tests.real_models convert FOLDER does so with what OpenVINO converts them to
"""

import argparse
from pathlib import Path

from tests.real_models.make import make_all
from tests.real_models.records import CONVERTED, RESULTS, Records
from tests.real_models.run import choose, run_all
from tests.real_models.sources import NAMES


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.real_models", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["make", "run", "convert"])
    parser.add_argument("folder", type=Path, help="the folder of the models")
    parser.add_argument("words", nargs="*", help="words that the names of the models have")
    parser.add_argument("--source", action="append", choices=NAMES, help="only the models of this source")
    parser.add_argument("--seconds", type=int, default=60, help="the CPU time of a run")
    parser.add_argument("--again", action="store_true", help="run models that have a result too")
    given = parser.parse_intermixed_args()
    sources = given.source or list(NAMES)
    if given.what == "make":
        make_all(given.folder, sources, given.words)
        return
    converted = given.what == "convert"
    results = Records(CONVERTED if converted else RESULTS)
    chosen = choose(given.folder, sources, given.words, None if given.again else results)
    run_all(given.folder, results, chosen, converted=converted, seconds=given.seconds)


if __name__ == "__main__":
    main()
