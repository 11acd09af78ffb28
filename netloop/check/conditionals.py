"""Rules about conditionals."""

from collections.abc import Iterator

from netloop.check.rule import Broken, Subject, rule
from netloop.layers.conditional import IConditionLayer


@rule("NL301")
def conditional_has_one_condition(subject: Subject) -> Iterator[Broken]:
    """one condition decides which branch is taken.

    Wrong: a conditional without ``set_condition``
    Right: ``conditional.set_condition(is_positive)``
    """
    for conditional in subject.network.conditionals:
        conditions = [each for each in conditional.layers if isinstance(each, IConditionLayer)]
        if conditional.output_layers and not conditions:
            fix = "call set_condition(tensor) on it, with a bool[]"
            yield Broken(conditional, f"{conditional.name!r} has no condition", fix)
        for second in conditions[1:]:
            fix = f"combine them into one tensor; the first is {conditions[0].name!r}"
            yield Broken(second, f"{conditional.name!r} has a second condition, {second.name!r}", fix)
