"""The time that each layer takes in a call, from the profiler of JAX."""

from __future__ import annotations

import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
from jax.profiler import ProfileData, ProfileOptions

from netloop.model.graph.layer import ILayer
from netloop.model.layers.loop import ILoop

OPERATION = re.compile(r"^\s+(?:ROOT )?%?([\w.\-]+) = (?:\([^=]*?\)|\S+) [\w\-]+\((.*)$", re.MULTILINE)
SCOPES = re.compile(r'op_name="([^"]*)"')
OTHER = "(other)"
"""The name of the operations that no layer made."""


Named = ILayer | ILoop


def scope_name(part: Named) -> str:
    """The name of a layer or loop in a form that XLA's profiles can show."""
    name = "".join(character if character.isalnum() or character in "_-." else "_" for character in part.name)
    return name or type(part).__name__


def layer_times(run: Callable[[], Any], calls: int, text: str, parts: Iterable[Named]) -> dict[str, float]:
    """The seconds that each layer takes in a call, by its name, the longest first.

    XLA fuses layers: the time of a fusion is that of the last layer in it, and a loop of few operations is one. On
    CPUs, operations of several threads add up to more than the call takes.

    Args:
        run: a call of a compiled program, to its end.
        calls: the number of calls to measure.
        text: the optimized HLO of the program.
        parts: the layers and loops of which it is made.
    """
    names = dict(_names(text, {scope_name(part): part.name or type(part).__name__ for part in parts}))
    seconds = defaultdict[str, float](float)
    for events in _lines(run, calls):
        for operation, duration in own_times(event for event in events if event.operation in names):
            seconds[names[operation]] += duration
    return {name: total / calls for name, total in sorted(seconds.items(), key=lambda item: -item[1])}


def _names(text: str, parts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The name of the layer or loop of each operation of a program."""
    for operation, rest in OPERATION.findall(text):
        scopes = SCOPES.search(rest)
        # a loop of the lowering of a layer is inside of its scope
        inside = scopes[1].split("/") if scopes else []
        yield operation, next((parts[scope] for scope in reversed(inside) if scope in parts), OTHER)


class TimedOperation(NamedTuple):
    """One execution of an operation.

    Attributes:
        operation: the name of the operation.
        begin, end: the times, in nanoseconds.
    """

    operation: str
    begin: float
    end: float


def own_times(events: Iterable[TimedOperation]) -> list[tuple[str, float]]:
    """The seconds of the events of one thread, without those of events inside them, as the operations of a loop are."""
    result: list[tuple[str, float]] = []
    around: list[tuple[int, float]] = []
    for operation, begin, end in sorted(events, key=lambda event: (event.begin, -event.end)):
        while around and around[-1][1] <= begin:
            around.pop()
        seconds = (end - begin) * 1e-9
        if around:
            outer = around[-1][0]
            result[outer] = result[outer][0], result[outer][1] - seconds
        around.append((len(result), end))
        result.append((operation, seconds))
    return result


def _lines(run: Callable[[], Any], calls: int) -> Iterator[list[TimedOperation]]:
    """The operations that calls execute, a list for each thread or stream."""
    options = ProfileOptions()
    options.python_tracer_level = 0  # it would make calls slower
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder, profiler_options=options):
            for _ in range(calls):
                run()
        (file,) = Path(folder).rglob("*.xplane.pb")
        for plane in ProfileData.from_file(str(file)).planes:
            yield from ([_event(event, plane.name) for event in line.events] for line in plane.lines)


def _event(event: Any, plane: str) -> TimedOperation:
    # on GPUs events have the names of kernels
    operation = dict(event.stats).get("hlo_op", event.name) if "GPU" in plane else event.name
    return TimedOperation(str(operation), event.start_ns, event.start_ns + event.duration_ns)
