"""The process of the fuzzer: ``python -m tests.fuzz.child TARGET FINDS`` and then options of libFuzzer.

An input that the oracle objects to is written to the folder FINDS, one for each line of code that raises, and the run
goes on. Inputs that take too long or too much memory end the process; libFuzzer writes those itself.
"""

import hashlib
import sys
import traceback
from pathlib import Path
from random import Random

import atheris

# Only what is imported in this block reports which of its branches ran.
with atheris.instrument_imports(include=["netloop"], enable_loader_override=False):
    from tests.fuzz.targets import TARGETS

MOST_ADDED = 64
"""The most bytes by which a change without structure makes an input longer."""


class Recorder:
    """Runs a target, and writes finds to a folder."""

    def __init__(self, name: str, folder: Path) -> None:
        self._target = TARGETS[name]
        self._folder = folder
        self._seen: set[tuple[str, str, int | None]] = set()

    def run(self, data: bytes) -> None:
        """Run the target with an input; the fuzzer calls it."""
        try:
            self._target.check(data)
        except Exception as error:
            first = _first_cause(error)
            at = traceback.extract_tb(first.__traceback__)[-1]
            key = type(first).__name__, at.filename, at.lineno
            if key not in self._seen:
                self._seen.add(key)
                self._write(data, type(first).__name__)

    def _write(self, data: bytes, kind: str) -> None:
        path = self._folder / f"{kind}-{hashlib.sha256(data).hexdigest()[:8]}"
        path.write_bytes(data)
        traceback.print_exc()
        print(f"find: {path}", file=sys.stderr, flush=True)

    def mutate(self, data: bytes, most: int, seed: int) -> bytes:
        """Change an input; the fuzzer calls it."""
        made = self._target.mutate(
            data, Random(seed), lambda element: atheris.Mutate(element, len(element) + MOST_ADDED)
        )
        return made if len(made) <= most else data


def _first_cause(error: BaseException) -> BaseException:
    return error if error.__cause__ is None else _first_cause(error.__cause__)


def main() -> None:
    name, folder, *options = sys.argv[1:]
    recorder = Recorder(name, Path(folder))
    atheris.Setup([sys.argv[0], *options], recorder.run, custom_mutator=recorder.mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
