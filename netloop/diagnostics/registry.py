"""The register of codes."""

import inspect
from dataclasses import dataclass

from netloop.diagnostics.finding import Severity


@dataclass(frozen=True)
class Code:
    """What a code stands for. It never changes its meaning.

    Attributes:
        name: the code, ``NL204``.
        severity: how much its findings weigh.
        text: the reason, as messages give it; then what there is to know; then, as ``Wrong: ...`` and ``Right: ...``,
            what breaks it and what does not. A blank line stands between them.
    """

    name: str
    severity: Severity
    text: str

    @property
    def why(self) -> str:
        """The reason."""
        return self.paragraphs[0].rstrip(".")

    @property
    def paragraphs(self) -> list[str]:
        """The parts of the text, each on one line, but for the examples, which have a line each."""
        parts = self.text.strip().split("\n\n")
        examples = parts.pop().replace("\nRight: ", "\0Right: ") if parts[-1].startswith("Wrong: ") else ""
        return [" ".join(each.split()) for part in (*parts, *examples.split("\0")) if (each := part.strip())]


CODES: dict[str, Code] = {}
"""Every code; those of the rules are here once ``netloop.check`` is imported."""


def enter(name: str, text: str, severity: Severity = Severity.ERROR) -> Code:
    """Enter a code into the register."""
    assert name not in CODES, f"{name} stands for something already"
    CODES[name] = made = Code(name, severity, inspect.cleandoc(text))
    return made


def reason(name: str) -> str:
    """The reason behind a code, as messages give it."""
    return CODES[name].why
