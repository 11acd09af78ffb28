"""The launches of a GPU: the kernels of a call, and of an iteration of each loop, counted in the text of a program."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

LAUNCHING = frozenset(
    [
        "fusion",
        "custom-call",
        "copy",
        "sort",
        "dot",
        "convolution",
        "fft",
        "cholesky",
        "triangular-solve",
        "scatter",
        "reduce",
        "reduce-window",
        "async",
    ]
)
"""The operations of optimized HLO that are one kernel, or one call of a library, each."""
NO_KERNELS = "AllocateBuffer", "Sharding", "AssumeGatherIndicesInBound", "PinToDevice"
"""The targets of custom calls that launch nothing."""

COMMENT = re.compile(r"/\*.*?\*/")
BLOCK = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*?^\}", re.MULTILINE | re.DOTALL)
OPERATION = re.compile(r"^\s+(?:ROOT )?%?[\w.\-]+ = (?:\([^=]*?\)|\S+) ([\w\-]+)\((.*)$", re.MULTILINE)
CALLED = re.compile(r"(body|condition|to_apply|calls|branch_computations|true_computation|false_computation)="
                    r"(\{[^}]*\}|%?[\w.\-]+)")  # fmt: skip
COUNTED = re.compile(r"known_trip_count\W+n\W+(\d+)")
TARGETED = re.compile(r'custom_call_target="([^"]*)"')


class LaunchSite(NamedTuple):
    """One part of a program, whose kernels run together.

    Attributes:
        kind: "entry", "body" or "condition" of a loop, "branch" of a conditional, or "graph", a CUDA graph.
        name: its name in the program.
        inside: the name of the place that runs it; empty for the entry.
        kernels: the number of launches by kind of operation; "graph" is the launch of a graph.
        times: how often it runs in a run of the place around it; 0 if only the run decides.
    """

    kind: str
    name: str
    inside: str
    kernels: Counter[str]
    times: int = 1


def launch_sites(text: str) -> list[LaunchSite]:
    """The kernels that the optimized HLO of a program launches, place by place, the entry first.

    A loop and a conditional cost their places; what is in a graph is one launch of the place around it.
    """
    blocks = {block[2]: block for block in BLOCK.finditer(COMMENT.sub("", text))}
    entry = next(name for name, block in blocks.items() if block[1])
    return [*_sites(("entry", entry, "", 1), blocks)]


def _sites(part: tuple[str, str, str, int], blocks: Mapping[str, re.Match[str]]) -> Iterator[LaunchSite]:
    kind, name, inside, times = part
    kernels, within = Counter[str](), list[tuple[str, str, str, int]]()
    for operation, rest in OPERATION.findall(blocks[name][0]):
        operation = operation.removesuffix("-start")
        if operation in ("while", "conditional", "call"):
            within += _parts(operation, rest, name)
            kernels["graph"] += operation == "call"
        elif operation in LAUNCHING and not any(target in NO_KERNELS for target in TARGETED.findall(rest)):
            kernels[operation] += 1
    yield LaunchSite(kind, name, inside, +kernels, times)
    for inner in within:
        yield from _sites(inner, blocks)


def _parts(operation: str, rest: str, name: str) -> list[tuple[str, str, str, int]]:
    """The kind, name, place around it and number of runs of what a loop, a conditional or a call runs."""
    called = {role: [part.strip(" %") for part in names.strip("{}").split(",")] for role, names in CALLED.findall(rest)}
    if operation == "while":
        (body,), (condition,) = called["body"], called["condition"]
        # the host counts the iterations of a loop whose number it knows
        trips = COUNTED.search(rest)
        return [("body", body, name, int(trips[1])) if trips else ("body", body, name, 0),
                *([] if trips else [("condition", condition, body, 1)])]  # fmt: skip
    kind = "branch" if operation == "conditional" else "graph"
    return [(kind, part, name, 1) for parts in called.values() for part in parts]


@dataclass(frozen=True)
class LoopLaunches:
    """The launches in one iteration of a loop of a compiled program, which may be a part of one of the network.

    Attributes:
        name: the name of its body in the program.
        launches: those of its body and of its condition, without those of loops inside of it and of branches.
        iterations: the number of iterations each time it is entered; None if only the run knows it.
    """

    name: str
    launches: int
    iterations: int | None


@dataclass(frozen=True)
class Launches:
    """The launches of a program on a GPU: kernels, calls of libraries, copies, and CUDA graphs, each of which is one.

    Attributes:
        total: those of a call; None if a loop ends where only the run knows. Of a conditional, all branches count but
            those with a loop, which are for rare cases.
        entry: those outside of loops and branches.
        loops: those of an iteration of each loop.
    """

    total: int | None
    entry: int
    loops: tuple[LoopLaunches, ...]

    @staticmethod
    def of(text: str) -> Launches:
        """The launches of a program whose optimized HLO is given."""
        parts = launch_sites(text)
        return Launches(_total(parts), sum(parts[0].kernels.values()), tuple(_loops(parts)))

    @staticmethod
    def joined(programs: Iterable[Launches]) -> Launches | None:
        """The launches of a call of each of some programs; None if there are none."""
        listed = [*programs]
        totals = [program.total for program in listed]
        total = None if None in totals else sum(filter(None, totals))
        entry, loops = sum(program.entry for program in listed), (program.loops for program in listed)
        return Launches(total, entry, tuple(loop for group in loops for loop in group)) if listed else None


def _loops(parts: list[LaunchSite]) -> Iterator[LoopLaunches]:
    conditions = {part.inside: sum(part.kernels.values()) for part in parts if part.kind == "condition"}
    for part in parts:
        if part.kind == "body":
            number = sum(part.kernels.values()) + conditions.get(part.name, 0)
            yield LoopLaunches(part.name, number, part.times or None)


def _total(parts: list[LaunchSite]) -> int | None:
    loops = {part.inside for part in parts if part.kind == "body"}
    times, number = {"": 1}, 0
    for part in parts:
        is_rare = part.kind == "branch" and part.name in loops
        # the kernels of a graph are one launch, which is that of the place around it
        times[part.name] = 0 if is_rare or part.kind == "graph" else times[part.inside] * part.times
        if part.kind == "body" and not part.times and times[part.inside]:
            return None
        number += times[part.name] * sum(part.kernels.values())
    return number
