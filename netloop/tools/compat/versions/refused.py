"""Classes of older versions that have no meaning in netloop: an error says why, and what a script has today."""

from typing import Any, NoReturn

from netloop.values.diagnostics import Finding, NetloopError, reason
from netloop.values.removed_names import RemovedName


def refused(entry: RemovedName) -> type[Any]:
    """The class that stands for one without a meaning; it can be derived from, and raises NL676 when instantiated."""

    def refuse(*arguments: Any, **named: Any) -> NoReturn:
        what = f"{entry.name} has no meaning in netloop: {entry.reason}"
        raise NetloopError(Finding("NL676", what, why=reason("NL676"), fix=f"use {entry.instead}"))

    return type(entry.name, (), {"__new__": refuse, "__doc__": f"Refused when instantiated: {entry.reason}."})
