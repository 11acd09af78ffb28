"""Rules, and the register of all rules."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from netloop.model.check.demand import Demand, Failure, does_not_hold, is_always_checked, may_fail, never_holds
from netloop.model.graph import ILayer, ITensor, TypeTable
from netloop.model.layers.assertion import IAssertionLayer
from netloop.model.nest import Scopes
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import Code, Finding, Severity, add_code
from netloop.values.types import TensorType

L = TypeVar("L")


@dataclass(frozen=True)
class Subject:
    """The input of a rule: a network, the types of its tensors, and the loops in which they vary.

    Attributes:
        network: the network.
        types: the types of its tensors, as declared or for the inputs of a call.
        scopes: the loops in which they vary.
    """

    network: INetworkDefinition
    types: TypeTable
    scopes: Scopes

    def layers(self, kind: type[L]) -> Iterator[L]:
        """The layers of a kind."""
        return (layer for layer in self.network.layers if isinstance(layer, kind))

    def live(self, kind: type[L]) -> Iterator[L]:
        """The live layers of a kind."""
        return (layer for layer in self.scopes.live if isinstance(layer, kind))

    @cached_property
    def live_set(self) -> frozenset[ILayer]:
        """All live layers."""
        return frozenset(self.scopes.live)

    @cached_property
    def certain_failures(self) -> dict[ILayer, Failure]:
        """The loop outputs, iterators and assertions that fail in every run, whatever its inputs are."""
        # what is certain only for the inputs of a call is an error of that run
        failures = Demand(self.network, self.scopes).failures if self._may_fail else {}
        return failures | {
            layer: does_not_hold(layer) for layer in self._false_assertions if is_always_checked(layer, self.scopes)
        }

    @cached_property
    def likely_failures(self) -> dict[ILayer, Failure]:
        """The others that fail unless a branch is not taken or a WHILE ends a loop early."""
        failures = Demand(self.network, self.scopes, is_likely=True).failures if self._may_fail else {}
        failures |= {layer: does_not_hold(layer) for layer in self._false_assertions}
        return {layer: failure for layer, failure in failures.items() if layer not in self.certain_failures}

    def fails(self, layer: ILayer) -> bool:
        """Whether a loop output, an iterator or an assertion fails for certain, or is likely to."""
        return layer in self.certain_failures or layer in self.likely_failures

    @cached_property
    def _false_assertions(self) -> list[IAssertionLayer]:
        return [layer for layer in self.live(IAssertionLayer) if never_holds(layer, self.network.types)]

    @cached_property
    def _may_fail(self) -> bool:
        return may_fail(self.network.types, self.scopes)

    def type(self, tensor: ITensor | None) -> TensorType | None:
        """The type of a tensor; None if it has none, which another rule reports."""
        type_ = None if tensor is None else self.types.of(tensor)
        return type_ if isinstance(type_, TensorType) else None


class Violation(NamedTuple):
    """One violation of a rule: the layer, loop, conditional or tensor, what is wrong with it, and the fix."""

    at: Any
    what: str
    fix: str = ""


@dataclass(frozen=True)
class Rule:
    """A rule for networks.

    Attributes:
        code: its code, with the reason.
        find: the function that finds the violations in a network.
    """

    code: Code
    find: Callable[[Subject], Iterator[Violation | Finding]]

    def apply(self, subject: Subject) -> Iterator[Finding]:
        """The findings of the rule in a network."""
        for violation in self.find(subject):
            if isinstance(violation, Finding):
                yield violation
            else:
                code = self.code
                yield Finding(
                    code.name,
                    violation.what,
                    _where(violation.at),
                    code.why,
                    violation.fix,
                    code.severity,
                    violation.at,
                )


RULES: dict[str, Rule] = {}


def rule(code: str, severity: Severity = Severity.ERROR) -> Callable[..., Any]:
    """Register a function as the rule ``code``; its docstring is the text of the code."""

    def register(find: Callable[[Subject], Iterator[Violation | Finding]]) -> Any:
        RULES[code] = Rule(add_code(code, find.__doc__ or "", severity), find)
        return find

    return register


def _where(at: Any) -> str:
    if hasattr(at, "where"):
        return at.where
    place = getattr(at, "source_location", None)
    named = f"{type(at).__name__} {at.name!r}"
    return f"{place}, {named}" if place else named
