"""Plans of engines: the network and its build options."""

import os
from collections.abc import Callable, Sequence
from typing import Any

from netloop.api.build_options import BuildOptions
from netloop.api.enums import ProfilingVerbosity
from netloop.api.memory import IHostMemory
from netloop.api.profile import IOptimizationProfile, Range
from netloop.compiler.passes import PASSES
from netloop.model import plan
from netloop.model.layers.sources import IConstantLayer
from netloop.model.network import INetworkDefinition
from netloop.model.plan.json_reader import JsonValue
from netloop.values.diagnostics import FileFormatError, Finding

OPTIONAL: dict[str, Callable[[JsonValue], Any]] = {
    "max_trips": lambda node: node.whole(0),
    "interruptible": JsonValue.flag,
    "marked_only": JsonValue.flag,
    "passes": lambda node: frozenset(value.text() for value in node.items()).intersection(PASSES),
    "donated": lambda node: frozenset(value.text() for value in node.items()),
    "forms": lambda node: tuple(_form(value) for value in node.items()),
    "tuned_on": JsonValue.text,
    "tactic_sources": lambda node: node.whole(0),
    "tf32": JsonValue.flag,
}
"""The build options that a plan has only if they differ from the default, with the functions that read them."""


def write_plan(
    network: INetworkDefinition, options: BuildOptions, without: Sequence[IConstantLayer] = ()
) -> IHostMemory:
    """Return the plan of an engine, ``without`` the weights of some constants."""
    build: dict[str, Any] = {"verbosity": options.verbosity.name, "profiles": [*map(_written, options.profiles)]}
    changed = {name: value for name in OPTIONAL if (value := getattr(options, name)) != getattr(BuildOptions, name)}
    changed = {
        name: sorted(value) if isinstance(value, frozenset | tuple) else value for name, value in changed.items()
    }
    return IHostMemory(plan.dumps(network, {**build, **changed}, without))


def read_plan(data: Any) -> tuple[INetworkDefinition, BuildOptions]:
    """Read the network of a plan and its build options.

    Raises:
        FileFormatError: the data is damaged, truncated, of a newer version, or not a plan.
    """
    return _contents(plan.read(data))


def load_plan(path: str | os.PathLike[str]) -> tuple[INetworkDefinition, BuildOptions]:
    """Read the network of a plan in a file and its build options.

    Raises:
        FileFormatError: the plan is damaged, truncated, of a newer version, or not a plan; the error names the file.
        OSError: the file cannot be read, or is not a regular file.
    """
    contents = plan.read_file(path)
    with plan.naming(path):
        return _contents(contents)


def _contents(found: plan.Plan) -> tuple[INetworkDefinition, BuildOptions]:
    network, build, absent = found
    numbers = frozenset(constant.index for constant in absent)
    if build is None:
        return network, BuildOptions(absent=numbers)
    fields = build.fields(("verbosity", "profiles"), OPTIONAL)
    profiles = tuple(_profile(value) for value in fields["profiles"].items())
    verbosity = fields["verbosity"].member(ProfilingVerbosity)
    changed = {name: read(fields[name]) for name, read in OPTIONAL.items() if name in fields}
    return network, BuildOptions(None, profiles, verbosity, absent=numbers, **changed)


def _form(node: JsonValue) -> tuple[str, str]:
    name, form = node.pair()
    return name.text(), form.text()


def _written(profile: IOptimizationProfile) -> dict[str, Any]:
    return {
        "shapes": [_written_range(name, range_) for name, range_ in profile.shapes().items()],
        "values": [_written_range(name, range_) for name, range_ in profile.values().items()],
    }


def _written_range(name: str, numbers: Range) -> list[Any]:
    return [name, *(list(shape) for shape in numbers)]


def _profile(node: JsonValue) -> IOptimizationProfile:
    profile, fields = IOptimizationProfile(), node.fields(("shapes", "values"))
    for key, take in (("shapes", profile.set_shape), ("values", profile.set_shape_input)):
        for value in fields[key].items():
            name, *numbers = value.items()
            limits = [[number.whole() for number in one.items()] for one in numbers]
            try:
                take(name.text(), *limits)
            except (TypeError, ValueError, RuntimeError) as error:
                raise FileFormatError(Finding("NL713", f"an optimization profile is invalid: {error}")) from None
    return profile
