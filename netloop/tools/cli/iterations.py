"""How often the loops of a model run, which every command that runs one prints."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import netloop as trt
from netloop.compiler.execution.trip_counts import TripCount, trip_counts
from netloop.compiler.tuning import inputs_behind
from netloop.tools.cli.progress import status
from netloop.tools.cli.verbosity import note
from netloop.values.enums import TripLimit

ENDLESS, MOST = "NL609", "--max-trips"


def counted(network: trt.INetworkDefinition, arrays: Mapping[str, Any], max_trips: int) -> list[TripCount]:
    """The iterations of each loop for some inputs, with a warning for a loop that makes none.

    None are returned if they cannot be counted; if the run of the model fails too, that says why.

    Raises:
        ExecutionError: a WHILE loop makes more than ``max_trips``, and more than each loop of known length.
        InputError: the inputs do not fit.
    """
    if not network.loops:
        return []
    try:
        with status("counting the iterations of loops"):
            counts = trip_counts(network, arrays, max_trips)
    except trt.NetworkError:
        return []
    except trt.ExecutionError as error:
        if not any(finding.code == ENDLESS for finding in error.findings):
            # iterations that no output needs may fail
            note(f"the iterations of loops are not counted: {error.findings[0].what}")
            return []
        fix = f"allow more with {MOST}, give it other --inputs, or correct the limit that should have ended it"
        findings = (replace(finding, fix=fix) if finding.code == ENDLESS else finding for finding in error.findings)
        raise trt.ExecutionError(*findings) from None
    for count in counts:
        if not count.iterations:
            print(
                f"warning: {_named(count)} makes no iteration, so nothing in it is run{_advice(count)}", file=sys.stderr
            )
    return counts


def lines_of(counts: Sequence[TripCount]) -> Iterator[str]:
    """A line for each loop."""
    for count in counts:
        noun = "iteration" if count.iterations == 1 else "iterations"
        yield f"{_named(count)}: {count.iterations} {noun}{' in all' if count.inside else ''}"


def records_of(counts: Sequence[TripCount]) -> list[dict[str, Any]]:
    """A record for each loop, for JSON."""
    return [{"name": count.loop.name, "inside": [*count.inside], "iterations": count.iterations} for count in counts]


def _named(count: TripCount) -> str:
    return " in ".join(f"loop {name!r}" if not number else repr(name)
                       for number, name in enumerate((count.loop.name, *reversed(count.inside))))  # fmt: skip


def _advice(count: TripCount) -> str:
    """The inputs with which a loop may run."""
    limits = (count.loop.limit(kind) for kind in TripLimit)
    behind = {tensor.name for limit in limits if limit is not None for tensor in inputs_behind(limit.tensor(0))}
    return f": give {' or '.join(f'--inputs {name}=...' for name in sorted(behind))}" if behind else ""
