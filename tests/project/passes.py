"""The sections of the passes in docs/performance.md, made from the passes.

``python -m tests.project.passes`` writes them into the page.
"""

from pathlib import Path

from netloop.compiler.passes import sections

ROOT = Path(__file__).parents[2]
PAGE, NOTES = ROOT / "docs" / "performance.md", ROOT / "benchmarks" / "notes.md"
BEGIN, END = "<!-- passes -->\n", "<!-- end of passes -->\n"


def page() -> str:
    """The page with the passes of today."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return before + BEGIN + "\n" + sections() + "\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
