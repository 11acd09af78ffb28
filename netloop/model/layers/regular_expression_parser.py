"""The parser of regular expressions in the syntax of RE2."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from netloop.values.diagnostics import LayerError, quoted

DEEPEST = 100
"""The deepest nest of groups."""

MOST_REPEATED = 1000
"""The largest number in a repetition, as for RE2."""

Range = tuple[str, str]


@dataclass(frozen=True)
class Characters:
    """A set of characters.

    Attributes:
        ranges: the ranges of characters, both ends included.
        categories: general categories of Unicode, or the letters that these begin with.
        parts: further sets.
        is_negated: whether it is the set of all other characters.
        ignores_case: whether it has the characters that differ in case only.
    """

    ranges: tuple[Range, ...] = ()
    categories: tuple[str, ...] = ()
    parts: "tuple[Characters, ...]" = ()
    is_negated: bool = False
    ignores_case: bool = False

    def has(self, character: str) -> bool:
        """Whether a character is in the set."""
        same = {character, *_other_cases(character)} if self.ignores_case else {character}
        return any(map(self._has, same)) != self.is_negated

    def _has(self, character: str) -> bool:
        category = unicodedata.category(character)
        return (
            any(first <= character <= last for first, last in self.ranges)
            or any(category.startswith(name) for name in self.categories)
            or any(part.has(character) for part in self.parts)
        )


def _other_cases(character: str) -> list[str]:
    cases = (character.lower(), character.upper(), character.casefold(), character.lower().upper())
    return [case_ for case_ in cases if len(case_) == 1]


@dataclass(frozen=True)
class Assertion:
    """A condition on the characters before and after a position."""

    kind: str


@dataclass(frozen=True)
class Row:
    """Nodes that follow each other."""

    nodes: "tuple[Node, ...]"


@dataclass(frozen=True)
class Alternation:
    """Alternative nodes: one of them matches."""

    nodes: "tuple[Node, ...]"


@dataclass(frozen=True)
class Repetition:
    """A node ``least`` to ``most`` times; None for any number."""

    node: "Node"
    least: int
    most: int | None


Node = Characters | Assertion | Row | Alternation | Repetition


def _ranges(*texts: str) -> tuple[Range, ...]:
    return tuple((text[0], text[-1]) for text in texts)


# fmt: off
CLASSES = {
    "d": Characters(_ranges("09")),
    "s": Characters(_ranges("\t", "\n", "\f", "\r", " ")),
    "w": Characters(_ranges("09", "AZ", "az", "_")),
}
POSIX = {
    "alnum":  _ranges("09", "AZ", "az"), "alpha":  _ranges("AZ", "az"),              "ascii":  _ranges("\0\x7f"),
    "blank":  _ranges("\t", " "),        "cntrl":  _ranges("\0\x1f", "\x7f"),        "digit":  _ranges("09"),
    "graph":  _ranges("!~"),             "lower":  _ranges("az"),                    "print":  _ranges(" ~"),
    "punct":  _ranges("!/", ":@", "[`", "{~"), "space":  _ranges("\t\r", " "),       "upper":  _ranges("AZ"),
    "word":   _ranges("09", "AZ", "az", "_"),  "xdigit": _ranges("09", "AF", "af"),
}
CONTROLS = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
ASSERTIONS = {"A": "text start", "z": "text end", "b": "boundary", "B": "no boundary"}
# fmt: on
CATEGORIES = {*"CLMNPSZ"} | {
    *("Cc", "Cf", "Co", "Cs", "Ll", "Lm", "Lo", "Lt", "Lu", "Mc", "Me", "Mn", "Nd", "Nl", "No"),
    *("Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "Sc", "Sk", "Sm", "So", "Zl", "Zp", "Zs"),
}

COUNTS = re.compile(r"\{(\d+)(,(\d*))?\}", re.ASCII)
GROUP = re.compile(r"\?(?:P?<(?P<name>\w+)>|(?P<on>[imsU]*)(?:-(?P<off>[imsU]+))?(?P<end>[:)]))", re.ASCII)
POSIX_CLASS = re.compile(r"\[:(\^?)(\w+):\]", re.ASCII)
CATEGORY = re.compile(r"([pP])(?:\{(\^?)(\w+)\}|([A-Z]))", re.ASCII)
CODE = re.compile(r"x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,6})\})", re.ASCII)


def parsed(pattern: str) -> Node:
    """The tree of a pattern.

    Raises:
        LayerError: it is invalid, or has syntax that is not supported.
    """
    return _Parser(pattern).whole()


class _Parser:
    """Reads a pattern from left to right, with the flags of the group that it is in."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._depth = 0
        self._flags: frozenset[str] = frozenset()

    def whole(self) -> Node:
        node = self._alternatives()
        if self._at < len(self._pattern):
            self._refuse("has a ) without its (")
        return node

    def _refuse(self, what: str) -> NoReturn:
        raise LayerError(f"the pattern {quoted(self._pattern)} {what}", "patterns have the syntax of RE2")

    def _next(self, text: str) -> bool:
        """Whether the pattern continues with a text, which is then read."""
        flag = self._pattern.startswith(text, self._at)
        self._at += len(text) * flag
        return flag

    def _match(self, form: re.Pattern[str]) -> re.Match[str] | None:
        """Read text that a regular expression matches; None if the pattern does not continue with it."""
        match_ = form.match(self._pattern, self._at)
        self._at = match_.end() if match_ else self._at
        return match_

    def _character(self) -> str:
        if self._at == len(self._pattern):
            self._refuse("ends too early")
        self._at += 1
        return self._pattern[self._at - 1]

    def _alternatives(self) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            self._refuse(f"has groups nested more than {DEEPEST} deep")
        rows = [self._row()]
        while self._next("|"):
            rows.append(self._row())
        self._depth -= 1
        return Alternation(tuple(rows))

    def _row(self) -> Node:
        nodes: list[Node] = []
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            nodes += self._quoted() if self._next("\\Q") else [self._repeated(self._single())]
        return Row(tuple(nodes))

    def _quoted(self) -> Sequence[Node]:
        end = self._pattern.find("\\E", self._at)
        text = self._pattern[self._at :] if end < 0 else self._pattern[self._at : end]
        self._at += len(text) + 2 * (end >= 0)
        singles: list[Node] = [self._characters(((character, character),)) for character in text]
        return [*singles[:-1], self._repeated(singles[-1])] if singles else []

    def _characters(self, ranges: tuple[Range, ...]) -> Characters:
        return Characters(ranges, ignores_case="i" in self._flags)

    def _single(self) -> Node:
        character = self._character()
        if character in "*+?":
            self._refuse(f"has nothing before {character} to repeat")
        match character:
            case "(":
                return self._group()
            case "[":
                return self._class()
            case "\\":
                return self._escaped(ASSERTIONS)
            case ".":
                return Characters(() if "s" in self._flags else _ranges("\n"), is_negated=True)
            case "^":
                return Assertion("line start" if "m" in self._flags else "text start")
            case "$":
                return Assertion("line end" if "m" in self._flags else "text end")
            case _:
                return self._characters(((character, character),))

    def _group(self) -> Node:
        flags = self._flags
        match_ = self._match(GROUP)
        if match_ is None and self._next("?"):
            self._refuse("has a group that RE2 does not have")
        if match_ is not None and not match_["name"]:
            self._flags = flags.union(match_["on"]) - frozenset(match_["off"] or "")
            if match_["end"] == ")":  # until the end of the group around
                return Row(())
        node = self._alternatives()
        self._flags = flags
        if not self._next(")"):
            self._refuse("has a ( without its )")
        return node

    def _repeated(self, node: Node) -> Node:
        counts = self._counts()
        if counts is None:
            return node
        self._next("?")
        if self._counts() is not None:
            self._refuse("repeats a repetition")
        return Repetition(node, *counts)

    def _counts(self) -> tuple[int, int | None] | None:
        """The limits of a repetition, if there is one here."""
        for text, counts in {"*": (0, None), "+": (1, None), "?": (0, 1)}.items():
            if self._next(text):
                return counts
        match_ = self._match(COUNTS)
        if match_ is None:
            return None
        if max(map(len, match_.groups(""))) > len(str(MOST_REPEATED)) + 1:
            self._refuse(f"repeats more than {MOST_REPEATED} times")
        least = int(match_[1])
        most = least if match_[2] is None else int(match_[3]) if match_[3] else None
        if max(least, most or 0) > MOST_REPEATED or (most is not None and most < least):
            self._refuse(f"repeats {least} to {most} times; the limits rise, up to {MOST_REPEATED}")
        return least, most

    def _class(self) -> Characters:
        is_negated = self._next("^")
        ranges: list[Range] = []
        parts: list[Characters] = []
        is_first = True
        while is_first or not self._next("]"):
            is_first = False
            part = self._part_of_class()
            if isinstance(part, Characters):
                parts.append(part)
                continue
            last = part
            if self._pattern[self._at : self._at + 1] == "-" and self._pattern[self._at + 1 : self._at + 2] != "]":
                self._at += 1
                end = self._part_of_class()
                last = end if isinstance(end, str) else self._refuse("has a range that ends with a class")
            if last < part:
                self._refuse(f"has the range {part}-{last}, which is empty")
            ranges.append((part, last))
        return replace(self._characters(tuple(ranges)), parts=tuple(parts), is_negated=is_negated)

    def _part_of_class(self) -> Characters | str:
        """A character of a class, or a class in it."""
        match_ = self._match(POSIX_CLASS)
        if match_ is not None:
            if match_[2] not in POSIX:
                self._refuse(f"has the class {match_[0]}, which RE2 does not have")
            return Characters(POSIX[match_[2]], is_negated=bool(match_[1]))
        character = self._character()
        if character != "\\":
            return character
        characters = self._escaped({})
        assert isinstance(characters, Characters)
        is_one = (
            len(characters.ranges) == 1
            and not characters.is_negated
            and characters.ranges[0][0] == characters.ranges[0][1]
        )
        return characters.ranges[0][0] if is_one else characters

    def _escaped(self, assertions: dict[str, str]) -> Characters | Assertion:
        """The characters or the assertion that a backslash introduces."""
        code, category = self._match(CODE), self._match(CATEGORY)
        if code is not None:
            number = int(code[1] or code[2], 16)
            if number > 0x10FFFF:
                self._refuse(f"has the code {number:#x}, beyond those of Unicode")
            return self._characters(((chr(number), chr(number)),))
        if category is not None:
            return self._category(category)
        character = self._character()
        if character.lower() in CLASSES:
            return replace(CLASSES[character.lower()], is_negated=character.isupper())
        if character in assertions:
            return Assertion(assertions[character])
        if character not in CONTROLS and (character.isalnum() or not character.isascii()):
            self._refuse(f"has \\{character}, which is not supported")
        character = CONTROLS.get(character, character)
        return self._characters(((character, character),))

    def _category(self, found: re.Match[str]) -> Characters:
        name = found[3] or found[4]
        if name not in CATEGORIES and name != "Any":
            self._refuse(f"has the class {name}, which is not a general category of Unicode")
        is_negated = (found[1] == "P") != bool(found[2])
        return Characters(categories=("",) if name == "Any" else (name,), is_negated=is_negated)
