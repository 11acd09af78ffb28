"""The figure of README.md: the time of other systems as a multiple of netloop's, from the table of RESULTS.md."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

SYSTEMS = {
    "hand-written JAX": re.compile("expert"),
    "onnxruntime": re.compile("onnxruntime"),
    "OpenVINO": re.compile("openvino"),
    "PyTorch": re.compile("torch"),
}
"""The systems of the figure, and how the names of their variants begin."""
SHOWN = re.compile(r"[WM]\d")
"""The workloads that people have; the others measure parts of netloop."""
OURS = "netloop"
ROW = re.compile(r"\| (?P<workload>[^|]+) \| (?P<threads>\d+) \| (?P<variant>[^|]+) \| (?P<ms>\d[\d.e+-]*) \|")

COLOURS = {"hand-written JAX": "#888888", "onnxruntime": "#1f77b4", "OpenVINO": "#9467bd", "PyTorch": "#ff7f0e"}
MARKS = {"hand-written JAX": "D", "onnxruntime": "o", "OpenVINO": "s", "PyTorch": "^"}
INK = {"light": "#1f2328", "dark": "#e6edf3"}
"""The colour of text and axes on light and dark pages, whose colour the figure leaves as it is."""


class Line(NamedTuple):
    """A workload in the figure.

    Attributes:
        name: the workload.
        times: the time of the fastest variant of each system, as a multiple of netloop's.
    """

    name: str
    times: Mapping[str, float]


def lines(page: str, threads: int = 2) -> list[Line]:
    """The workloads of the first machine of a page of results, in its order."""
    found: dict[str, dict[str, float]] = {}
    _, _, details = page.partition("### Every variant")
    details, _, _ = details.partition("\n## ")
    for row in ROW.finditer(details):
        if int(row["threads"]) == threads and SHOWN.match(row["workload"]):
            found.setdefault(row["workload"], {})[row["variant"]] = float(row["ms"])
    return [Line(name, dict(_multiples(times))) for name, times in found.items() if OURS in times]


def _multiples(times: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    for system, begins in SYSTEMS.items():
        own = [ms for variant, ms in times.items() if begins.match(variant)]
        if own:
            yield system, min(own) / times[OURS]


def draw(shown: Iterable[Line], folder: Path) -> list[Path]:
    """Draw a figure for light pages and one for dark ones; return their paths.

    Raises:
        SystemExit: matplotlib is not installed.
    """
    try:
        pyplot: Any = import_module("matplotlib.pyplot")
    except ImportError as error:
        raise SystemExit("--plot needs matplotlib, which is not installed") from error
    rows, made = list(shown), list[Path]()
    for theme, ink in INK.items():
        # texts as texts are small and searchable, and a fixed salt gives the same file for the same results
        style = {"svg.fonttype": "none", "svg.hashsalt": "netloop", "font.size": 9}
        style |= dict.fromkeys(["text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"], ink)
        with pyplot.rc_context(style):
            figure, axes = pyplot.subplots(figsize=(8, 0.26 * len(rows) + 1.2), layout="constrained")
            _fill(axes, rows, ink)
            figure.legend(loc="outside upper center", ncols=len(SYSTEMS) + 1, frameon=False)
            made.append(folder / f"speed-{theme}.svg")
            figure.savefig(made[-1], transparent=True, metadata={"Date": None})
            pyplot.close(figure)
    return made


def _fill(axes: Any, rows: list[Line], ink: str) -> None:
    axes.axvline(1, color=ink, linewidth=1, label=OURS)
    for system in SYSTEMS:
        places = [(line.times[system], row) for row, line in enumerate(rows) if system in line.times]
        if places:
            colour = COLOURS[system]
            axes.plot(*zip(*places, strict=True), MARKS[system], label=system, color=colour, markersize=5)
    axes.set_yticks(range(len(rows)), [row.name for row in rows])
    axes.set(xscale="log", xlabel="time as a multiple of netloop's; to the right of the line is slower")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
