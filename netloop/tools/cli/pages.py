"""Pages of Markdown: rendered on a terminal where the package rich is installed, and as they are elsewhere."""

from __future__ import annotations

import importlib
import importlib.util
import sys


def print_page(text: str) -> None:
    """Print a page of Markdown."""
    if sys.stdout.isatty() and importlib.util.find_spec("rich") is not None:
        markdown = importlib.import_module("rich.markdown").Markdown(text, hyperlinks=False)
        importlib.import_module("rich.console").Console().print(markdown)
    else:
        print(text, end="")
