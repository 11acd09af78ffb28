"""What is wrong with a network: every rule that it breaks, each with a code and a reason."""

from collections.abc import Iterable
from typing import NamedTuple

from netloop.check import conditionals, loops, portability, types, wiring
from netloop.check.explain import explain
from netloop.check.rule import RULES, Subject
from netloop.diagnostics import Finding, NetworkError, Severity
from netloop.graph.infer import TypeTable
from netloop.graph.layer import ILayer, check_instance
from netloop.nest import Block, Scopes, nest
from netloop.network import INetworkDefinition

__all__ = ["ValidatedNetwork", "check", "explain", "require_valid"]

_FAMILIES = (wiring, types, loops, conditionals, portability)
"""The modules whose rules are in the register."""


def check(network: INetworkDefinition, target: str | None = None) -> list[Finding]:
    """Everything that is wrong with a network; an empty list if nothing is.

    Args:
        network: the network.
        target: ``"tensorrt"`` turns what only TensorRT refuses into errors too.

    Returns:
        A finding for each rule broken and each thing that breaks it, in the order of the rules' codes.
    """
    check_instance("network", network, INetworkDefinition)
    if target not in (None, "tensorrt"):
        raise ValueError(f"target is None or 'tensorrt', not {target!r}")
    findings, _ = _examine(Subject(network, network.types, Scopes(network)))
    return [each.as_error() for each in findings] if target else findings


class ValidatedNetwork(NamedTuple):
    """What is known of a network without errors: in which loops its tensors vary, and the steps that it runs as."""

    scopes: Scopes
    block: Block


def require_valid(
    network: INetworkDefinition, types: TypeTable | None = None, also: Iterable[ILayer] = ()
) -> ValidatedNetwork:
    """The scopes and steps of a network without errors.

    Args:
        network: the network.
        types: the types of its tensors for certain inputs, where these are known.
        also: layers that are to be run even if the network does not need them.

    Raises:
        NetworkError: it has errors, all of which are told.
    """
    subject = Subject(network, types or network.types, Scopes(network, also))
    findings, block = _examine(subject)
    if block is None:
        raise NetworkError(*(each for each in findings if each.severity is Severity.ERROR))
    return ValidatedNetwork(subject.scopes, block)


def _examine(subject: Subject) -> tuple[list[Finding], Block | None]:
    """All findings, and the steps that the network runs as; None if it has errors."""
    findings = [found for code in sorted(RULES) for found in RULES[code].apply(subject)]
    if any(each.severity is Severity.ERROR for each in findings):
        return findings, None
    try:
        return findings, nest(subject.network, subject.scopes)
    except NetworkError as error:
        return [*findings, *error.findings], None
