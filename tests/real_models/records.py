"""What is known of each model, in a JSON file with one line for each."""

import json
import re
from pathlib import Path
from typing import Any

from netloop.process.atomic_write import write_whole

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).with_name("results.json")
CONVERTED = Path(__file__).with_name("converted.json")
"""The results from which the page is made: of the models, and of what OpenVINO converts them to."""


class Records(dict[str, dict[str, Any]]):
    """Records by the names of models; each change is written to the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(json.loads(path.read_text(encoding="utf-8")) if path.exists() else {})

    def __setitem__(self, name: str, record: dict[str, Any]) -> None:
        super().__setitem__(name, record)
        self.write()

    def write(self) -> None:
        """Write the file, the models in the order of their names."""
        lines = [f"{json.dumps(name)}: {json.dumps(self[name])}" for name in sorted(self)]
        write_whole(self.path, [("{\n" + ",\n".join(lines) + "\n}\n").encode()])


def one_line(failure: BaseException) -> str:
    """The type of an exception and the first line of its message, without folders."""
    text = str(failure).strip() or "no message"
    return f"{type(failure).__name__}: {re.sub(r'/[^ ]*/', '', text.splitlines()[0])}"[:200]
