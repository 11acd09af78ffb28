"""Rules about conditionals."""

from collections.abc import Iterator

from netloop.model.check.rule import Subject, Violation, rule
from netloop.model.layers.conditional import IConditionLayer


@rule("NL301")
def conditional_has_one_condition(subject: Subject) -> Iterator[Violation]:
    """a conditional has exactly one condition, which decides the branch.

    Wrong: a conditional without ``set_condition``
    Right: ``conditional.set_condition(is_positive)``
    """
    for conditional in subject.network.conditionals:
        conditions = conditional.layers.of_kind(IConditionLayer)
        if conditional.output_layers and not conditions:
            fix = "call set_condition(tensor) on it, with a bool[]"
            yield Violation(conditional, f"{conditional.name!r} has no condition", fix)
        for second in conditions[1:]:
            fix = f"combine them into one tensor; the first is {conditions[0].name!r}"
            yield Violation(second, f"{conditional.name!r} has a second condition, {second.name!r}", fix)
