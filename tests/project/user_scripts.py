"""User scripts as type checkers with their defaults see them: the samples, and the Python blocks of README and docs.

``python -m tests.project.user_scripts`` runs pyright and mypy, and fails where either reports an error.
"""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.project.pages import PAGES, ROOT, examples, name_of

FOREIGN_STUBS = "docs/openvino.md", "docs/coming-from-openvino.md"
"""Pages that call OpenVINO, whose own types refuse numbers and arrays that it takes."""

MISSING_PACKAGES = "reportMissingImports", "reportMissingModuleSource"
"""Rules of pyright for packages that samples name, and that are not all installed."""


def page_script(page: Path) -> str:
    """The Python blocks of a page as one script, each on the lines that it has on the page."""
    lines: list[str] = []
    for example in examples(page.read_text(encoding="utf-8")):
        lines += [""] * (example.line - 1 - len(lines)) + example.source.splitlines()
    return "\n".join(lines) + "\n"


def write_scripts(folder: Path) -> None:
    """Write all scripts and the configuration of pyright into a folder."""
    for page in PAGES:
        if name_of(page) in FOREIGN_STUBS:
            continue
        name = name_of(page).removesuffix(".md").replace("/", "_").replace("-", "_")
        (folder / f"{name}.py").write_text(page_script(page), encoding="utf-8")
    for sample in (ROOT / "samples").glob("*.py"):
        (folder / sample.name).write_bytes(sample.read_bytes())
    rules = {"typeCheckingMode": "standard", "extraPaths": [str(ROOT)]} | dict.fromkeys(MISSING_PACKAGES, False)
    (folder / "pyrightconfig.json").write_text(json.dumps(rules), encoding="utf-8")


def main() -> int:
    """Run the type checkers; the exit status is 0 if neither reports an error."""
    with TemporaryDirectory() as name:
        write_scripts(Path(name))
        pyright = ["pyright", "--pythonpath", sys.executable, "-p", name]
        # the blocks of a page are one session, in which names have new values
        redefined = ["--allow-redefinition", "--local-partial-types"]
        mypy = [
            sys.executable,
            "-m",
            "mypy",
            "--ignore-missing-imports",
            "--follow-imports",
            "silent",
            *redefined,
            name,
        ]
        return max(subprocess.run(command, cwd=name, check=False).returncode for command in (pyright, mypy))


if __name__ == "__main__":
    sys.exit(main())
