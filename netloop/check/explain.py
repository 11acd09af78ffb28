"""The register of codes in words: one of them, or all of them as a page."""

import re
import textwrap
from collections.abc import Iterator

from netloop.diagnostics import CODES, Code, Severity, did_you_mean, listed

CHAPTERS = {
    "NL1": "Wiring: inputs, outputs and names",
    "NL2": "Loops",
    "NL3": "Conditionals",
    "NL4": "Types and plugins",
    "NL5": "What cannot be compiled",
    "NL6": "What is told while running",
    "NL7": "Files",
}
"""The chapters of the page, by what their codes begin with."""

AS_DIGITS = str.maketrans("OILZSB", "011258")
"""Letters that are taken for digits."""

_HEAD = """\
# Rules

Every complaint of netloop has a code, which never changes its meaning.
`python -m netloop explain NL204` prints what one of them stands for, and `netloop.explain("NL204")` returns it.
`python -m netloop check model.py` finds what the network breaks that `build()` of a file returns.

An *error* has no meaning.
A *portability* finding has one here, and TensorRT refuses it, leaves it undefined or runs it otherwise.
It stops nothing, unless `check` is asked with `target="tensorrt"`.

This page is made by `python -m netloop rules`."""


def explain(code: str) -> str:
    """What a code stands for: its reason, what there is to know, and examples.

    Args:
        code: such as ``"NL204"``.

    Raises:
        ValueError: there is no such code.
    """
    if not isinstance(code, str):
        raise TypeError(f"a code is a str, not {type(code).__name__}")
    found = CODES.get(code.upper())
    if found is None:
        raise ValueError(f"there is no code {code!r}; {_hint(code.upper())}")
    _, *more = found.paragraphs
    lines = [f"{found.name} ({found.severity.value}): {found.why}"]
    for each in more:
        lines += [each] if each.startswith("Right: ") else ["", each if _is_example(each) else textwrap.fill(each, 80)]
    return "\n".join(lines).replace("``", "`")


def _hint(code: str) -> str:
    """What a code may have been meant to be."""
    meant = code[:2] + code[2:].translate(AS_DIGITS)
    if meant in CODES:
        return f"did you mean {meant!r}?"
    names = sorted(CODES)
    near = [each for each in names if each[:3] == code[:3]] or names
    return did_you_mean(code, names) or f"there are {listed(near, len(near))}"


def _is_example(paragraph: str) -> bool:
    return paragraph.startswith(("Wrong: ", "Right: "))


def rules_page() -> str:
    """All codes as a page of Markdown, ``docs/rules.md``."""
    parts = [_HEAD]
    for begin, title in CHAPTERS.items():
        parts.append(f"## {title}")
        parts += ["\n\n".join(_section(CODES[name])) for name in sorted(CODES) if name.startswith(begin)]
    return "\n\n".join(parts) + "\n"


def _section(code: Code) -> Iterator[str]:
    weight = "" if code.severity is Severity.ERROR else f" ({code.severity.value})"
    why = code.why.replace("``", "`")
    yield f"### {code.name}{weight}"
    yield f"{why[0].upper()}{why[1:]}."
    _, *more = code.paragraphs
    examples = [each for each in more if _is_example(each)]
    yield from (_sentences(each) for each in more if not _is_example(each))
    if examples:
        yield "\n".join(f"- {each.replace('``', '`')}" for each in examples)


def _sentences(paragraph: str) -> str:
    """A paragraph with a line for each sentence."""
    return re.sub(r"(?<=[^.][.:]) (?=[A-Z])", "\n", paragraph.replace("``", "`"))
