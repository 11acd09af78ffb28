"""A rule, and the register of all rules."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from netloop.diagnostics import Finding, Severity
from netloop.graph.infer import TypeTable
from netloop.graph.tensor import ITensor
from netloop.nest import Scopes
from netloop.network import INetworkDefinition
from netloop.types import TensorType


@dataclass(frozen=True)
class Subject:
    """What a rule looks at: a network, the types of its tensors, and the loops in which they vary."""

    network: INetworkDefinition
    types: TypeTable
    scopes: Scopes

    def type(self, tensor: ITensor | None) -> TensorType | None:
        """The type of a tensor; None if it has none, which another rule tells."""
        found = None if tensor is None else self.types.of(tensor)
        return found if isinstance(found, TensorType) else None


class Broken(NamedTuple):
    """A thing that breaks a rule: the layer, loop, conditional or tensor, what is wrong with it, and what to do."""

    at: Any
    what: str
    fix: str = ""


@dataclass(frozen=True)
class Rule:
    """A rule that every network obeys.

    Attributes:
        code: its code; it never changes its meaning.
        severity: how much it weighs.
        why: the reason, as messages give it.
        find: the function that finds what breaks it.
    """

    code: str
    severity: Severity
    why: str
    find: Callable[[Subject], Iterator[Broken | Finding]]

    def apply(self, subject: Subject) -> Iterator[Finding]:
        """The findings of the rule in a network."""
        for found in self.find(subject):
            if isinstance(found, Finding):
                yield found
            else:
                yield Finding(self.code, found.what, _where(found.at), self.why, found.fix, self.severity, found.at)


RULES: dict[str, Rule] = {}


def rule(code: str, severity: Severity = Severity.ERROR) -> Callable[..., Any]:
    """Enter a function into the register as the rule ``code``; its docstring begins with the reason."""

    def enter(find: Callable[[Subject], Iterator[Broken | Finding]]) -> Any:
        first_line = inspect.getdoc(find) or ""
        RULES[code] = Rule(code, severity, first_line.split("\n\n")[0].replace("\n", " ").rstrip("."), find)
        return find

    return enter


def _where(at: Any) -> str:
    if hasattr(at, "where"):
        return at.where
    place = getattr(at, "place", None)
    named = f"{type(at).__name__} {at.name!r}"
    return f"{place}, {named}" if place else named
