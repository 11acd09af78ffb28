"""Rules about runs that fail, or are likely to, because of numbers that are known before the run."""

from collections.abc import Iterator

from netloop.model.check.rule import Subject, Violation, rule
from netloop.values.diagnostics import Severity


@rule("NL221")
def run_can_succeed(subject: Subject) -> Iterator[Violation]:
    """every run would fail: the numbers are known before the run, and every run needs the value.

    A length or an axis is too short for the COUNT of its loop, a length is negative, LAST_VALUE reads an iterator
    past the end of its axis, or an element of an assertion's condition is false. An error that a run may avoid is
    NL222.

    Wrong: a length of 4 in a loop of 5 iterations, whose output is marked as an output of the network
    Right: a length of 5; elements past the last iteration are 0
    """
    for layer, failure in subject.certain_failures.items():
        yield Violation(layer, *failure)


@rule("NL222", Severity.WARNING)
def run_is_likely_to_succeed(subject: Subject) -> Iterator[Violation]:
    """a run that needs the value would fail: the numbers are known before the run.

    Other runs succeed, as an error in what is not needed is not reported: the value, or the assertion, is in a branch
    that may not be taken, or in a loop that a WHILE may end earlier, or that may run no iteration. An error in every
    run is NL221.

    Wrong: a length of 4 in a loop of 5 iterations, in a branch of a conditional
    Right: a length of 5; elements past the last iteration are 0
    """
    for layer, failure in subject.likely_failures.items():
        yield Violation(layer, *failure)
