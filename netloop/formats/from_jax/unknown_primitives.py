"""The primitives of a function that netloop cannot import, all at once, each with a way out."""

from collections.abc import Collection, Iterator
from typing import Any

from jax.extend.core import ClosedJaxpr, JaxprEqn, Primitive

from netloop.formats.from_jax.element_types import is_complex, is_tensor
from netloop.formats.from_jax.implementations import implementation_of
from netloop.formats.from_jax.liveness import every_equation
from netloop.formats.from_jax.rule_table import COMPLEX, MOVED
from netloop.formats.from_jax.rules import REFUSED, TABLE
from netloop.values.diagnostics import Finding, ModelError, reason

OWN_RULE = "pass a rule of your own, rules={%r: function}, with function(network, operands, params)"


def check_primitives(jaxpr: ClosedJaxpr, custom: Collection[str]) -> None:
    """Check that netloop, or the caller, has a rule for every primitive and an element type for every value.

    Raises:
        ModelError: something is missing; it has a finding for each primitive and each element type.
    """
    findings: dict[tuple[str, str], tuple[Finding, int]] = {}
    for key, finding in _all_of(jaxpr, custom):
        first, count = findings.get(key, (finding, 0))
        findings[key] = first, count + 1
    if findings:
        raise ModelError(*(_counted(finding, count) for finding, count in findings.values()))


def _all_of(
    jaxpr: ClosedJaxpr, custom: Collection[str], around: Collection[Primitive] = ()
) -> Iterator[tuple[tuple[str, str], Finding]]:
    """The findings; ``around`` are the primitives whose implementation this is, which may not use them again."""
    for equation, place in every_equation(jaxpr):
        name, primitive = equation.primitive.name, equation.primitive
        is_known = name in custom or TABLE.find(name) is not None or primitive in around
        inner = None if is_known else implementation_of(equation)
        if inner is None:
            yield from _of(equation, str(place), custom)
        else:
            yield from _all_of(inner, custom, (*around, primitive))


def _of(equation: JaxprEqn, where: str, custom: Collection[str]) -> list[tuple[tuple[str, str], Finding]]:
    name = equation.primitive.name
    if name in custom:
        return []
    atoms = (*equation.invars, *equation.outvars)
    numbers = [atom.aval for atom in atoms if is_complex(atom.aval)]
    has_rule = TABLE.find(name) is not None and (not numbers or name in MOVED)
    if not has_rule and not (numbers and COMPLEX.find(name) is not None):
        if numbers and name not in REFUSED:
            what, fix = f"{name!r} takes or returns {_text(numbers[0])}", _other_types(numbers[0])
            why = "complex numbers are pairs of real ones in a network, and this primitive has no rule for pairs"
            return [((name, "complex"), Finding("NL746", what, where, why, fix))]
        why = REFUSED.get(name, reason("NL744"))
        finding = Finding("NL744", f"netloop has no rule for the primitive {name!r}", where, why, OWN_RULE % name)
        return [((name, ""), finding)]
    values: list[tuple[tuple[str, str], Finding]] = []
    for atom in atoms:
        aval: Any = atom.aval
        if not is_tensor(aval) and hasattr(aval, "dtype"):
            what, fix = f"{name!r} takes or returns {_text(aval)}", _other_types(aval)
            values.append((("", str(aval.dtype)), Finding("NL746", what, where, reason("NL746"), fix)))
    return values[:1]


def _text(aval: Any) -> str:
    return f"{aval.dtype}[{','.join(map(str, aval.shape))}]"


def _other_types(aval: Any) -> str:
    if "complex" in str(aval.dtype):
        return "compute with real and imaginary parts, as two arrays or along an axis of length 2"
    if "key" in str(aval.dtype):
        return "use keys of JAX's default generator, threefry2x32"
    return "convert to a type that netloop has"


def _counted(finding: Finding, count: int) -> Finding:
    if count == 1:
        return finding
    return Finding(finding.code, f"{finding.what}, in {count} equations", finding.where, finding.why, finding.fix)
