"""The table of passes in docs/performance.md, made from the passes.

``python -m tests.project.passes`` writes the table into the page.
"""

from pathlib import Path

from netloop.compiler.passes import table

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"
BEGIN, END = "<!-- passes -->\n", "<!-- end of passes -->\n"


def page() -> str:
    """The page with the table of today."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
