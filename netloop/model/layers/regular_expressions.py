r"""Regular expressions in the syntax of RE2, matched in a time that is linear in the length of the text.

Source: https://github.com/google/re2/wiki/Syntax. Refused are scripts such as ``\p{Greek}``, octal codes and ``\C``;
general categories such as ``\p{Lu}`` are those of Python's ``unicodedata``. Groups are not captured, so that whether
an operator is greedy makes no difference.

Python's ``re`` does not serve: it needs exponential time for patterns such as ``(a*)*b``, and means other things by
``$``, ``\Z`` and ``\s``. The package ``google-re2`` is no dependency, not even an optional one: a plan with a pattern
runs wherever netloop does, and an error names what is wrong in a pattern.
"""

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


class RegularExpression:
    """A pattern, as an automaton that is in a set of states.

    Raises:
        LayerError: the pattern is invalid, or too large.
    """

    def __init__(self, pattern: str) -> None:
        self._states: list[_State] = []
        self._end = self._add(_State(None, None, ()))
        self._pattern = pattern
        self._first = frozenset({self._automaton(parsed(pattern), self._end)})
        # which assertions hold is all that a transition depends on besides the states and the character
        self._assertions = sorted({state.assertion for state in self._states if state.assertion})
        self._following: dict[tuple[frozenset[int], str, tuple[bool, ...]], tuple[frozenset[int], bool]] = {}

    def full_match(self, text: str) -> bool:
        """Whether the pattern matches a whole text."""
        states, before = self._first, ""
        for character in text:
            states, _ = self._step(states, before, character)
            before = character
            if not states:
                return False
        return self._step(states, before, "")[1]

    def matches(self, text: str) -> Iterator[tuple[int, int]]:
        """The positions of the leftmost matches that do not overlap, each as long as possible and not empty."""
        position = 0
        while position < len(text):
            end = self._longest(text, position)
            if end > position:
                yield position, end
            position = max(position + 1, end)

    def _longest(self, text: str, start: int) -> int:
        """The end of the longest match that begins at a position; the position if there is none."""
        states, end = self._first, start
        before = text[start - 1] if start else ""
        for position in range(start, len(text) + 1):
            character = text[position] if position < len(text) else ""
            states, is_match = self._step(states, before, character)
            end = position if is_match else end
            if not states:
                break
            before = character
        return end

    def _step(self, states: frozenset[int], before: str, after: str) -> tuple[frozenset[int], bool]:
        """The states after a character, which is empty at the end, and whether the text before it is a match."""
        holding = tuple([ASSERTIONS[assertion](before, after) for assertion in self._assertions])
        key = states, after, holding
        result = self._following.get(key)
        if result is None:
            if len(self._following) >= MOST_STEPS:
                self._following.clear()
            here = self._reached(states, before, after)
            readers = (self._states[loop] for loop in here)
            read = (
                reader.following for reader in readers if after and reader.characters and reader.characters.has(after)
            )
            result = frozenset(state for following in read for state in following), self._end in here
            self._following[key] = result
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


@lru_cache(64)
def regular_expression(pattern: str) -> RegularExpression:
    """The automaton of a pattern.

    Raises:
        LayerError: the pattern is invalid, or too large.
    """
    return RegularExpression(pattern)
