"""What is wrong with a network: every rule that it breaks, each with a code and a reason."""

from netloop.check import conditionals, loops, types, wiring
from netloop.check.rule import RULES, Subject
from netloop.diagnostics import Finding, NetworkError, Severity
from netloop.graph.infer import TypeTable
from netloop.nest import Scopes
from netloop.network import INetworkDefinition

__all__ = ["check", "require_sound"]

_FAMILIES = (wiring, types, loops, conditionals)
"""The modules whose rules are in the register."""


def check(network: INetworkDefinition, target: str | None = None) -> list[Finding]:
    """Everything that is wrong with a network; an empty list if nothing is.

    Args:
        network: the network.
        target: ``"tensorrt"`` turns what only TensorRT refuses into errors too.

    Returns:
        A finding for each rule broken and each thing that breaks it, in the order of the rules' codes.
    """
    if target not in (None, "tensorrt"):
        raise ValueError(f"target is None or 'tensorrt', not {target!r}")
    findings = _findings(Subject(network, network.types, Scopes(network)))
    return [each.as_error() for each in findings] if target else findings


def require_sound(network: INetworkDefinition, types: TypeTable | None = None) -> Scopes:
    """The scopes of a network without errors.

    Args:
        network: the network.
        types: the types of its tensors for certain inputs, where these are known.

    Raises:
        NetworkError: it has errors, all of which are told.
    """
    scopes = Scopes(network)
    findings = _findings(Subject(network, types or network.types, scopes))
    errors = [each for each in findings if each.severity is Severity.ERROR]
    if errors:
        raise NetworkError(*errors)
    return scopes


def _findings(subject: Subject) -> list[Finding]:
    return [found for each in sorted(RULES.values(), key=lambda rule: rule.code) for found in each.apply(subject)]
