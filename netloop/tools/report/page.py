"""The page: the template with the data and the layout library in it, one file that loads nothing."""

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from netloop.api.engine import ICudaEngine
from netloop.model.network import INetworkDefinition
from netloop.process.atomic_write import write_whole
from netloop.tools.report.compared import Peer
from netloop.tools.report.model import page_model

PARTS = {
    "STYLE": "page.css",
    "LICENSE": "dagre.LICENSE",
    "DAGRE": "dagre.min.js",
    "ALIGNED": "aligned.js",
    "SCRIPT": "page.js",
    "DIFFERENCE": "difference.js",
}
"""The files that templates include, by the words that stand for them."""
ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
"""The characters that could end the element that holds the data."""


def report(
    network: INetworkDefinition | ICudaEngine,
    path: str | Path | None = None,
    inputs: Mapping[str, Any] | None = None,
    peers: Sequence[Peer] = (),
) -> str:
    """A page that shows a network or an engine in a browser: one HTML file, which loads nothing from elsewhere.

    Args:
        network: a network, which may be invalid, or an engine.
        path: the file to write; None to write none.
        inputs: an array for each input, by name: the page then shows the values by iteration, and the time of a call.
        peers: the runtimes that every tensor is compared with: ``"reference"``, or ``"onnxruntime"`` or ``"openvino"``,
            which need their packages; or functions from inputs to outputs by name, which compare outputs.

    Returns:
        The page.

    Raises:
        TypeError: an argument is of another kind.
        ValueError: there are peers and no inputs, or a peer is unknown.
        ModuleNotFoundError: the package of a peer is not installed.
        InputError: an input is missing, unknown, or of another type or shape.
        OSError: the file cannot be written.
    """
    page = page_of(page_model(network, inputs, peers))
    if path is not None:
        write_whole(Path(path), [page.encode()])
    return page


def page_of(model: Mapping[str, Any]) -> str:
    """The page of a network."""
    return filled("page.html", model)


def filled(template: str, model: Mapping[str, Any]) -> str:
    """A template with some data, which cannot leave their element whatever they contain."""
    data = json.dumps(model, allow_nan=False, separators=(",", ":"))
    for character, escape in ESCAPES.items():
        data = data.replace(character, escape)
    folder = files("netloop.tools.report")
    before, mark, after = folder.joinpath(template).read_text(encoding="utf-8").partition("{{DATA}}")
    assert mark, "the template has no place for the data"
    for word, name in PARTS.items():
        part = folder.joinpath(name).read_text(encoding="utf-8")
        before, after = (name.replace(f"{{{{{word}}}}}", part) for name in (before, after))
    return before + data + after
