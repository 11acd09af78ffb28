"""Plans of engines: the network, and what is kept of its build."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from netloop import plan
from netloop.api.build_options import Origin
from netloop.api.enums import ProfilingVerbosity
from netloop.api.memory import IHostMemory
from netloop.api.profile import IOptimizationProfile, Range
from netloop.diagnostics import FileFormatError, Finding
from netloop.layers.sources import IConstantLayer
from netloop.network import INetworkDefinition
from netloop.passes import PASSES
from netloop.plan.json_reader import JsonValue

EXTRAS: dict[str, Callable[[JsonValue], Any]] = {
    "max_trips": lambda node: node.whole(0),
    "interruptible": JsonValue.flag,
    "marked_only": JsonValue.flag,
    "passes": lambda node: frozenset(each.text() for each in node.items()).intersection(PASSES),
    "donated": lambda node: frozenset(each.text() for each in node.items()),
    "tactic_sources": lambda node: node.whole(0),
}
"""What of an origin is in a plan only if it is not as usual, each with how it is read."""


def write_plan(network: INetworkDefinition, origin: Origin, without: Sequence[IConstantLayer] = ()) -> IHostMemory:
    """The plan of an engine, ``without`` the weights of some constants."""
    build: dict[str, Any] = {
        "verbosity": origin.verbosity.name,
        "profiles": [_written(each) for each in origin.profiles],
    }
    extras = {name: value for name in EXTRAS if (value := getattr(origin, name)) != getattr(Origin, name)}
    extras = {name: sorted(each) if isinstance(each, frozenset) else each for name, each in extras.items()}
    return IHostMemory(plan.dumps(network, {**build, **extras}, without))


def read_plan(data: Any) -> tuple[INetworkDefinition, Origin]:
    """The network of a plan, and what was kept of its build.

    Raises:
        FileFormatError: the plan is damaged, cut short, of a newer version, or no plan.
    """
    network, build, absent = plan.read(data)
    numbers = frozenset(each.index for each in absent)
    if build is None:
        return network, Origin(absent=numbers)
    fields = build.fields(("verbosity", "profiles"), EXTRAS)
    profiles = tuple(_profile(each) for each in fields["profiles"].items())
    verbosity = fields["verbosity"].member(ProfilingVerbosity)
    extras = {name: read(fields[name]) for name, read in EXTRAS.items() if name in fields}
    return network, Origin(None, profiles, verbosity, absent=numbers, **extras)


def _written(profile: IOptimizationProfile) -> dict[str, Any]:
    return {
        "shapes": [_written_range(name, each) for name, each in profile.shapes().items()],
        "values": [_written_range(name, each) for name, each in profile.values().items()],
    }


def _written_range(name: str, numbers: Range) -> list[Any]:
    return [name, *(list(each) for each in numbers)]


def _profile(node: JsonValue) -> IOptimizationProfile:
    made, fields = IOptimizationProfile(), node.fields(("shapes", "values"))
    for key, take in (("shapes", made.set_shape), ("values", made.set_shape_input)):
        for each in fields[key].items():
            name, *numbers = each.items()
            limits = [[number.whole() for number in one.items()] for one in numbers]
            try:
                take(name.text(), *limits)
            except (TypeError, ValueError) as error:
                raise FileFormatError(Finding("NL713", f"an optimization profile has no meaning: {error}")) from None
    return made
