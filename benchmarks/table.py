"""Results as tables and files."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.runner import OURS, Result, Timing
from benchmarks.systems import versions
from netloop.process.atomic_write import write_whole

Row = Sequence[str]

ABLATED = ": passes"
"""The suffix of the name of an ablation."""


SUMMARY = ["workload", "threads", "netloop ms", "to expert", "floor", "to the best peer", "floor", "which"]
EFFECT = ["workload", "threads", "pass", "ms without it", "ms with all", "without by with"]
DETAIL = ["workload", "threads", "variant", "ms", "quartiles", "samples", "netloop to it"]


def summary(result: Result) -> Row:
    """Return the row of a workload: netloop's ratios with their floors."""
    peer = result.best_peer()
    named = [name for name in result.floors if name not in ("expert", "peer")]
    ratios = [f"{result.floors[name]:g} of {name}: {shown(result, name)}" for name in named]
    which = "; ".join([peer or "-", *ratios, *(excess(result, name) for name in result.beyond)])
    ours = result.timings.get(OURS)
    return [
        result.name,
        str(result.threads),
        f"{ours.median:.4g}" if ours else "-",
        shown(result, "expert"),
        floor(result, "expert"),
        shown(result, peer, "peer"),
        floor(result, "peer"),
        which,
    ]


def shown(result: Result, variant: str | None, floor_of: str | None = None) -> str:
    """Format the ratio of netloop to a variant; bold if it is above its floor."""
    ratio, most = result.ratio(variant), result.floors.get(floor_of or variant or "")
    if ratio is None:
        return "-"
    text = f"{ratio:.3g}" if ratio < 0.1 else f"{ratio:.2f}"
    return f"**{text}**" if most is not None and ratio > most else text


def excess(result: Result, variant: str) -> str:
    """Format the milliseconds that netloop takes beyond a variant and their limit; bold if it takes more."""
    most, name = result.beyond[variant], f" beyond {variant}" * bool(variant)
    known = OURS in result.timings and (not variant or variant in result.timings)
    if not known:
        return f"{most:g} ms{name}: -"
    ms = result.timings[OURS].median - (result.timings[variant].median if variant else 0)
    return f"{most:g} ms{name}: " + (f"**{ms:.3g}**" if ms > most else f"{ms:.3g}")


def floor(result: Result, what: str) -> str:
    """Format a floor of a workload."""
    return f"{result.floors[what]:g}" if what in result.floors else "-"


def effects(result: Result) -> Iterator[Row]:
    """Yield a row for each pass of a workload, with the time without that pass."""
    for variant in result.timings:
        ratio = result.ratio(variant)
        if variant != OURS and ratio is not None:
            without, ours = result.timings[variant].median, result.timings[OURS].median
            name = variant.removeprefix("without ").replace("any", "all of them")
            workload = result.name.removesuffix(ABLATED)
            yield [workload, str(result.threads), name, f"{without:.4g}", f"{ours:.4g}", f"{1 / ratio:.2f}"]


def detail(result: Result) -> Iterator[Row]:
    """Yield a row for each variant of a workload."""
    for variant, timing in result.timings.items():
        quartiles = f"{timing.low:.4g} - {timing.high:.4g}"
        yield [
            result.name,
            str(result.threads),
            variant,
            f"{timing.median:.4g}",
            quartiles,
            str(timing.samples),
            shown(result, variant),
        ]
    for variant, reason in result.failures.items():
        first = reason.strip().splitlines()[0][:100].replace("|", "/")
        yield [result.name, str(result.threads), variant, "-", first, "0", "-"]


def markdown(head: Row, rows: Iterable[Row]) -> str:
    """Format a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def machine() -> str:
    """Name the machine: its processor and its number of cores."""
    lines = _read("/proc/cpuinfo").splitlines()
    names = [line.split(":")[1] for line in lines if line.startswith("model name")] or [platform.processor()]
    processor = " ".join(names[0].replace("(R)", "").replace(" Processor", "").split())
    return f"{processor}, {len(os.sched_getaffinity(0))} cores"


def software() -> str:
    """Describe the versions of the system, of Python and of all that is measured."""
    packages = ", ".join(f"{name} {number}" for name, number in versions().items())
    return f"{platform.system()}, Python {platform.python_version()}; {packages}."


def _read(path: str) -> str:
    file = Path(path)
    return file.read_text(encoding="utf-8") if file.exists() else ""


# ---------------------------------------------------------------------------- files


def load(path: Path) -> list[Result]:
    """Read results from a file; none if it does not exist.

    Raises:
        SystemExit: the file has something else.
    """
    if not path.exists():
        return []
    try:
        return [_result(value) for value in json.loads(path.read_text(encoding="utf-8"))]
    except (ValueError, TypeError, KeyError, OSError) as error:
        raise SystemExit(f"{path} has no results of benchmarks: {error}") from error


def _result(data: dict[str, Any]) -> Result:
    timings = {variant: Timing(**timing) for variant, timing in data.pop("timings").items()}
    return Result(**data, timings=timings)


def save(results: Iterable[Result], path: Path) -> None:
    """Write results to a file, which has the old ones until it has the new ones."""
    write_whole(path, [(json.dumps([asdict(result) for result in results], indent=1) + "\n").encode()])


def joined(old: Iterable[Result], new: Iterable[Result], order: Sequence[str]) -> list[Result]:
    """Merge the results of two runs in the order of ``order``; new ones replace old ones."""
    latest = {(result.name, result.threads): result for result in [*old, *new] if result.name in order}
    return sorted(latest.values(), key=lambda result: (order.index(result.name), -result.threads))


def page(results: Sequence[Result], before: str = "") -> str:
    """Return the page of the latest results: those of this machine, and of others as the page had them before."""
    sections = dict(_sections(before))
    sections[machine()] = section(results)
    return HEAD + "".join(f"\n## {name}\n{text}" for name, text in sections.items())


HEAD = """# Results

Written by `python -m benchmarks --write`; [README.md](README.md) describes what is measured, and how.
Times are medians in milliseconds.
A ratio is netloop's time divided by that of another variant, and bold above its floor.
Each machine has a section, and ratios of different machines are not comparable.
"""


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """Yield the machines of a page, each with its text."""
    for part in text.split("\n## ")[1:]:
        name, _, rest = part.partition("\n")
        yield name, rest.rstrip("\n") + "\n"


def section(results: Sequence[Result]) -> str:
    """Return the tables of the results of this machine."""
    compared = [result for result in results if not result.name.endswith(ABLATED)]
    ablated = [result for result in results if result.name.endswith(ABLATED)]
    return f"""
{software()}

### Summary

{markdown(SUMMARY, map(summary, compared))}
### Passes

{markdown(EFFECT, (row for result in ablated for row in effects(result)))}
### Every variant

{markdown(DETAIL, (row for result in compared for row in detail(result)))}"""
