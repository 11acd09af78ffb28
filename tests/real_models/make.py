"""Making the models: ``python -m tests.real_models.make FOLDER SOURCE`` makes those of one source that are missing."""

import importlib
import signal
import subprocess
import sys
import time
import traceback
import warnings
from pathlib import Path
from types import FrameType

from tests.real_models.measure import LEVELS, runner
from tests.real_models.recipe import Recipe, Recipes, Sizes, save_inputs
from tests.real_models.records import Records, one_line

MOST_SECONDS = 240
"""The time that one model may take to be made."""


def make_all(folder: Path, sources: list[str], words: list[str]) -> None:
    """Make all models that are missing, each source in a process of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for source in sources:
        command = [sys.executable, "-m", "tests.real_models.make", str(folder), source, *words]
        while subprocess.run(command, check=False).returncode < 0:
            print(f"{source}: the process died, and goes on with the next model", flush=True)


def make_source(folder: Path, source: str, words: list[str]) -> None:
    """Make the models of one source that are missing and whose names have all of the words."""
    recipes: Recipes = importlib.import_module(f"tests.real_models.sources.{source}").RECIPES
    records = Records(folder / "made.json")
    for recipe in recipes.values():
        if recipe.name in records or not all(word in recipe.name for word in words):
            continue
        record = {"source": source, "tool": recipe.tool}
        records[recipe.name] = {**record, "reason": "the process died"}
        began = time.monotonic()
        records[recipe.name] = {**record, **make(folder, recipe)}
        print(f"{recipe.name}: {time.monotonic() - began:.0f} s, {records[recipe.name]}", flush=True)


def make(folder: Path, recipe: Recipe) -> dict[str, object]:
    """Make one model, and say for how many sizes onnxruntime runs it, or why it could not be made."""
    path = folder / f"{recipe.name}.onnx"
    signal.alarm(MOST_SECONDS)
    try:
        sizes = runnable(path, recipe.write(path))
    except Exception as failure:  # exporters raise anything
        path.unlink(missing_ok=True)
        (folder / f"{recipe.name}.log").write_text(traceback.format_exc(), encoding="utf-8")
        return {"reason": one_line(failure)}
    finally:
        signal.alarm(0)
    save_inputs(path, sizes)
    return {"bytes": path.stat().st_size, "sizes": len(sizes)}


def runnable(path: Path, sizes: Sizes) -> Sizes:
    """The sizes with which onnxruntime runs a model; an exporter may have fixed the lengths of the first.

    Raises:
        Exception: onnxruntime does not run the model with its first size.
    """
    run = runner(str(path), LEVELS.ORT_DISABLE_ALL)
    run(sizes[0])
    kept = sizes[:1]
    for size in sizes[1:]:
        try:
            run(size)
        except Exception:  # onnxruntime has many kinds
            continue
        kept.append(size)
    return kept


def _give_up(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"not made in {MOST_SECONDS} s")


def main() -> None:
    signal.signal(signal.SIGALRM, _give_up)
    warnings.simplefilter("ignore")
    make_source(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])


if __name__ == "__main__":
    main()
