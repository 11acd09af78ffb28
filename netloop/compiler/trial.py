"""The forms of passes that were timed for an engine, and the notes about them."""

from collections.abc import Sequence
from dataclasses import dataclass

from netloop.compiler.passes import Forms, Note

BY = "tuning"
"""The author of the notes of tuning."""


@dataclass(frozen=True)
class Trial:
    """A form that was timed.

    Attributes:
        by: the name of the pass; "all" for the chosen forms of all passes together against their rules.
        form: the form.
        seconds: the time of a call; None if it failed.
        before: the time of a call with what was the fastest form until then.
        chosen: whether it was faster beyond the spread, and is in use.
        failure: the error of the call or the compilation.
    """

    by: str
    form: str
    seconds: float | None
    before: float | None
    chosen: bool
    failure: str = ""

    def __str__(self) -> str:
        if self.seconds is None or self.before is None:
            return f"{self.by} {self.form}: failed: {self.failure}"
        verdict = "chosen" if self.chosen else "not chosen"
        return f"{self.by} {self.form}: {self.seconds * 1e3:.4g} ms, before {self.before * 1e3:.4g} ms, {verdict}"


def notes_of(forms: Forms, trials: Sequence[Trial]) -> list[Note]:
    """Notes of the forms that were timed; without any, of those in use, which were timed before."""
    if trials:
        return [Note(BY, str(trial)) for trial in trials]
    return [Note(BY, f"{name} {form}: measured before") for name, form in sorted(forms.items())]
