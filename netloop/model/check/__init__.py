"""The checks of a network: every rule that it breaks is a finding, with a code and a reason."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from netloop.model.check import conditionals, failures, loops, portability, wiring
from netloop.model.check.rule import RULES, Subject
from netloop.model.graph import ILayer, TypeTable, check_instance
from netloop.model.nest import Block, IfStep, Scopes, layers_of, nest, walk
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import Finding, NetworkError, Severity
from netloop.values.types import TensorType

__all__ = ["ValidatedNetwork", "check", "require_valid"]

_FAMILIES = (wiring, loops, failures, conditionals, portability)
"""The modules that register rules; importing them is enough."""


def check(network: INetworkDefinition, target: str | None = None) -> list[Finding]:
    """Return all findings for a network, in the order of their codes; an empty list if it is valid and portable.

    The target ``"tensorrt"`` makes portability findings errors. Warnings are never errors.
    """
    check_instance("network", network, INetworkDefinition)
    if target not in (None, "tensorrt"):
        raise ValueError(f"target must be None or 'tensorrt', not {target!r}")
    findings, _ = _examine(Subject(network, network.types, Scopes(network)))
    return [
        finding.as_error() if finding.severity is Severity.PORTABILITY and target else finding for finding in findings
    ]


class ValidatedNetwork(NamedTuple):
    """A network without errors: the scopes of its tensors, and its region tree."""

    scopes: Scopes
    block: Block


def require_valid(
    network: INetworkDefinition, types: TypeTable | None = None, also: Iterable[ILayer] = ()
) -> ValidatedNetwork:
    """Return the scopes and region tree of a network, which must have no errors.

    Warnings are logged, each once, unless ``types`` are given, those of its tensors for certain inputs. Layers in
    ``also`` are live even if no output depends on them.

    Raises:
        NetworkError: it has errors; the exception has all of them.
    """
    subject = Subject(network, types or network.types, Scopes(network, also))
    findings, block = _examine(subject)
    if block is None:
        raise NetworkError(*(finding for finding in findings if finding.severity is Severity.ERROR))
    for finding in findings:
        if types is None and finding.severity is Severity.WARNING:
            network.warn_once(f"{finding.code}: {finding.what}", str(finding))
    return ValidatedNetwork(subject.scopes, block)


def known_valid(network: INetworkDefinition) -> ValidatedNetwork:
    """Return the scopes and region tree of a network that is known to have no errors, and is not checked again."""
    scopes = Scopes(network)
    return ValidatedNetwork(scopes, nest(network, scopes))


def _examine(subject: Subject) -> tuple[list[Finding], Block | None]:
    """Return all findings, and the region tree; None in its place if there are errors."""
    findings = [found for code in sorted(RULES) for found in RULES[code].apply(subject)]
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    # the region tree is defined for networks whose only errors are types
    if errors and subject.types.is_of_call and all(error.code == "NL401" for error in errors):
        lazy = set(_lazy_layers(nest(subject.network, subject.scopes), subject.types))
        # what the declared types forbid is an error in any branch; a network that passes made has those of the call
        declared = None if subject.network.types is subject.types else subject.network.types
        findings = [
            finding for finding in findings if finding.at not in lazy or (declared and declared.finding(finding.at))
        ]
    if any(finding.severity is Severity.ERROR for finding in findings):
        return findings, None
    try:
        return findings, nest(subject.network, subject.scopes)
    except NetworkError as error:
        return [*findings, *error.findings], None


def _lazy_layers(block: Block, types: TypeTable) -> Iterator[ILayer]:
    """The layers of branches that may not be possible for the inputs of a call, as the other branch is."""
    for step in walk(block):
        if isinstance(step, IfStep) and all(isinstance(types.of(tensor), TensorType) for tensor in step.writes):
            taken = types[step.condition].value
            for number, branch in enumerate(step.branches):
                if taken is None or bool(taken) != (number == 0):
                    yield from (layer for step in branch.steps for layer in layers_of(step))
