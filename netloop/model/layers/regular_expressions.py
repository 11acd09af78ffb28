r"""Regular expressions in the syntax of RE2, matched in a time that is linear in the length of the text.

Source: https://github.com/google/re2/wiki/Syntax. Refused are scripts such as ``\p{Greek}``, octal codes and ``\C``;
general categories such as ``\p{Lu}`` are those of Python's ``unicodedata``. Groups are not captured, so that whether
an operator is greedy makes no difference.

Python's ``re`` serves only for runs of characters of a set, which tokens often are, and which it finds in C. For other
patterns it does not: it needs exponential time for some, such as ``(a*)*b``, and means other things by ``$``, ``\Z``
and ``\s``. The package ``google-re2`` is no dependency, not even an optional one: a plan with a pattern runs wherever
netloop does, and an error names what is wrong in a pattern.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

from netloop.model.layers.regular_expression_parser import (
    Alternation,
    Assertion,
    Characters,
    Node,
    Repetition,
    Row,
    parsed,
)
from netloop.values.diagnostics import LayerError, quoted

MOST_STATES = 20_000
"""The most states of an automaton, which nested repetitions multiply."""

MOST_STEPS = 10_000
"""The number of transitions that are remembered."""

ASSERTIONS: dict[str, Callable[[str, str], bool]] = {
    "text start": lambda before, after: not before,
    "text end": lambda before, after: not after,
    "line start": lambda before, after: before in ("", "\n"),
    "line end": lambda before, after: after in ("", "\n"),
    "boundary": lambda before, after: _is_word(before) != _is_word(after),
    "no boundary": lambda before, after: _is_word(before) == _is_word(after),
}
"""Whether an assertion holds between two characters, either of which is empty at an end of the text."""


def _is_word(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character == "_")


class _State(NamedTuple):
    """A state of the automaton: it reads a character, or it continues at once where its assertion holds."""

    characters: Characters | None
    assertion: str | None
    following: tuple[int, ...]


class _Position(NamedTuple):
    """A set of states between two characters of a text.

    Attributes:
        states: the states.
        before: the character before, or one for which the same assertions hold.
        following: the step over each character after it that was met; "" is the end of the text.
    """

    states: frozenset[int]
    before: str
    following: "dict[str, _Step]"


_Step = tuple[_Position | None, bool]
"""The place behind a character, None if no match goes on there, and whether the text before the character is one."""


class RegularExpression:
    """A pattern, as an automaton that is in a set of states.

    Raises:
        LayerError: the pattern is invalid, or too large.
    """

    def __init__(self, pattern: str) -> None:
        self._states: list[_State] = []
        self._end = self._add(_State(None, None, ()))
        self._pattern = pattern
        node = parsed(pattern)
        self._runs = _runs(node)
        self._first = frozenset({self._automaton(node, self._end)})
        self._has_assertions = any(state.assertion for state in self._states)
        self._places: dict[tuple[frozenset[int], str], _Position] = {}
        self._remembered = 0

    def full_match(self, text: str) -> bool:
        """Whether the pattern matches a whole text."""
        place = self._place(self._first, "")
        for character in text:
            place, _ = place.following.get(character) or self._step(place, character)
            if place is None:
                return False
        return self._ends(place)

    def matches(self, text: str) -> Iterator[tuple[int, int]]:
        """The positions of the leftmost matches that do not overlap, each as long as possible and not empty."""
        return self._longest_matches(text) if self._runs is None else map(re.Match.span, self._runs.finditer(text))

    def _longest_matches(self, text: str) -> Iterator[tuple[int, int]]:
        position = 0
        while position < len(text):
            end = self._longest(text, position)
            if end > position:
                yield position, end
            position = max(position + 1, end)

    def _longest(self, text: str, start: int) -> int:
        """The end of the longest match that begins at a position; the position if there is none."""
        end, place = start, self._place(self._first, text[start - 1] if start else "")
        for position in range(start, len(text)):
            character = text[position]
            place, is_match = place.following.get(character) or self._step(place, character)
            if is_match:
                end = position
            if place is None:
                return end
        return len(text) if self._ends(place) else end

    def _ends(self, place: "_Position") -> bool:
        """Whether a text that ends at a place is a match."""
        return (place.following.get("") or self._step(place, ""))[1]

    def _place(self, states: frozenset[int], before: str) -> "_Position":
        # what assertions ask of a character is all that the following depends on besides the states
        kind = "a" if _is_word(before) else before if before in ("", "\n") else " "
        key = states, kind if self._has_assertions else ""
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = _Position(*key, {})
        return place

    def _step(self, place: "_Position", after: str) -> "_Step":
        """The place after a character, which is empty at the end, and whether the text before it is a match."""
        if self._remembered >= MOST_STEPS:
            self._places.clear()
            self._remembered = 0
        here = self._reached(place.states, place.before, after)
        readers = (self._states[number] for number in here)
        read = (reader.following for reader in readers if after and reader.characters and reader.characters.has(after))
        states = frozenset(state for following in read for state in following)
        result = place.following[after] = self._place(states, after) if states else None, self._end in here
        self._remembered += 1
        return result

    def _reached(self, states: frozenset[int], before: str, after: str) -> set[int]:
        """The states that are reached without reading a character."""
        numbers, stack = set(states), list(states)
        while stack:
            state = self._states[stack.pop()]
            if state.characters is None and (state.assertion is None or ASSERTIONS[state.assertion](before, after)):
                fresh = [layer for layer in state.following if layer not in numbers]
                numbers.update(fresh)
                stack += fresh
        return numbers

    def _add(self, state: _State) -> int:
        if len(self._states) >= MOST_STATES:
            raise LayerError(f"the pattern {quoted(self._pattern)} is too large", "its repetitions multiply")
        self._states.append(state)
        return len(self._states) - 1

    def _automaton(self, node: Node, following: int) -> int:
        """Add the states of a node, which continue with a state; return the first."""
        match node:
            case Characters():
                return self._add(_State(node, None, (following,)))
            case Assertion(kind):
                return self._add(_State(None, kind, (following,)))
            case Alternation(nodes):
                return self._add(_State(None, None, tuple(self._automaton(node, following) for node in nodes)))
            case Row(nodes):
                for other in reversed(nodes):
                    following = self._automaton(other, following)
                return following
            case Repetition():
                return self._repetition(node, following)

    def _repetition(self, node: Repetition, following: int) -> int:
        if node.most is None:
            again = self._add(_State(None, None, ()))
            self._states[again] = _State(None, None, (self._automaton(node.node, again), following))
            following = again
        else:
            for _ in range(node.most - node.least):
                following = self._add(_State(None, None, (self._automaton(node.node, following), following)))
        for _ in range(node.least):
            following = self._automaton(node.node, following)
        return following


def _runs(node: Node) -> re.Pattern[str] | None:
    """A pattern of Python that means the same as a node, if that is a run of characters of plain ranges."""
    match node:
        case Alternation((Row((Repetition(Characters(ranges, (), (), is_negated, False), 1, None),)),)) if ranges:
            listed = "".join(f"{re.escape(first)}-{re.escape(last)}" for first, last in ranges)
            return re.compile(f"[{'^' * is_negated}{listed}]+")
        case _:
            return None


@lru_cache(64)
def regular_expression(pattern: str) -> RegularExpression:
    """The automaton of a pattern.

    Raises:
        LayerError: the pattern is invalid, or too large.
    """
    return RegularExpression(pattern)
