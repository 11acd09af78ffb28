"""Plans of engines: the network, and what is kept of its build."""

from __future__ import annotations

from typing import Any

from netloop import plan
from netloop.diagnostics import FileFormatError, Finding
from netloop.network import INetworkDefinition
from netloop.plan.document import Node
from netloop.runtime.enums import ProfilingVerbosity
from netloop.runtime.memory import IHostMemory
from netloop.runtime.origin import Origin
from netloop.runtime.profile import IOptimizationProfile, Range


def write_plan(network: INetworkDefinition, origin: Origin) -> IHostMemory:
    """The plan of an engine."""
    build: dict[str, Any] = {
        "verbosity": origin.verbosity.name,
        "profiles": [_written(each) for each in origin.profiles],
    }
    if origin.max_trips is not None:
        build["max_trips"] = origin.max_trips
    if origin.interruptible:
        build["interruptible"] = True
    return IHostMemory(plan.dumps(network, build))


def read_plan(data: Any) -> tuple[INetworkDefinition, Origin]:
    """The network of a plan, and what was kept of its build.

    Raises:
        FileFormatError: the plan is damaged, cut short, of a newer version, or no plan.
    """
    network, build = plan.read(data)
    if build is None:
        return network, Origin()
    fields = build.fields(("verbosity", "profiles"), ("max_trips", "interruptible"))
    profiles = tuple(_profile(each) for each in fields["profiles"].items())
    max_trips = fields["max_trips"].whole(0) if "max_trips" in fields else None
    interruptible = "interruptible" in fields and fields["interruptible"].flag()
    verbosity = fields["verbosity"].member(ProfilingVerbosity)
    return network, Origin(None, profiles, verbosity, max_trips=max_trips, interruptible=interruptible)


def _written(profile: IOptimizationProfile) -> dict[str, Any]:
    return {
        "shapes": [_written_range(name, each) for name, each in profile.shapes().items()],
        "values": [_written_range(name, each) for name, each in profile.values().items()],
    }


def _written_range(name: str, numbers: Range) -> list[Any]:
    return [name, *(list(each) for each in numbers)]


def _profile(node: Node) -> IOptimizationProfile:
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
