"""The register of codes."""

import inspect
import re
from dataclasses import dataclass

from netloop.values.diagnostics import file_codes, network_codes
from netloop.values.diagnostics.finding import Severity


@dataclass(frozen=True)
class Code:
    """A code and its text. It never changes its meaning.

    Attributes:
        name: the code, ``NL204``.
        severity: the severity of its findings.
        text: the reason, as messages give it after "because"; then paragraphs of explanation, after blank lines; then,
            as ``Wrong: ...`` and ``Right: ...``, an example that breaks the rule and one that keeps it.
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
        """The parts of the text, each on one line; each of the two examples is a part of its own."""
        parts = re.split(r"\n\n|\n(?=Wrong: |Right: )", self.text.strip())
        return [" ".join(part.split()) for part in parts]


CODES: dict[str, Code] = {}
"""Every code; those of the rules are here once ``netloop.model.check`` is imported."""


def add_code(name: str, text: str, severity: Severity = Severity.ERROR) -> Code:
    """Add a code to the register."""
    code = Code(name, severity, inspect.cleandoc(text))
    # the same code again: Python imports a module twice if Ctrl-C ended the first import
    assert CODES.get(name, code) == code, f"{name} is in the register already"
    CODES[name] = code
    return code


for _name, _text in (network_codes.TEXTS | file_codes.TEXTS).items():
    add_code(_name, _text)
for _name, _text in (network_codes.WARNINGS | file_codes.WARNINGS).items():
    add_code(_name, _text, Severity.WARNING)


def reason(name: str) -> str:
    """The reason behind a code, as messages give it."""
    return CODES[name].why
