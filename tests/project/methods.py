"""The table of the methods of a network in docs/layers.md, made from the classes that have them.

``python -m tests.project.methods`` writes the table into the page.
"""

from collections import defaultdict
from pathlib import Path
from typing import NoReturn, get_type_hints

from netloop.model.layers import LayerMethods
from netloop.model.network import INetworkDefinition

PAGE = Path(__file__).parents[2] / "docs" / "layers.md"
BEGIN, END = "<!-- methods -->\n", "<!-- end of methods -->\n"


def adds(cls: type, name: str) -> bool:
    """Whether a class has a method of a name that adds something, and does not only refuse to."""
    method = getattr(cls, name, None)
    return name.startswith("add_") and method is not None and get_type_hints(method).get("return") is not NoReturn


def table() -> str:
    """The ``add_`` methods by family, as Markdown; classes of one family share a row."""
    families = defaultdict[str, list[str]](list)
    for cls in (INetworkDefinition, *LayerMethods.__bases__):
        families[vars(cls)["FAMILY"]] += [f"`{name}`" for name in vars(cls) if adds(cls, name)]
    rows = [f"| {family} | {', '.join(methods)} |" for family, methods in families.items()]
    return "\n".join(["| family | methods |", "|---|---|", *rows]) + "\n"


def page() -> str:
    """The page with the table of today."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
