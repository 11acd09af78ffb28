"""Regular expressions against those of RE2 in onnxruntime, and against the linear time that they promise."""

import itertools
import time
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netloop.model.layers.regular_expressions import MOST_STEPS, RegularExpression, regular_expression
from netloop.values.diagnostics import LayerError
from tests.support.onnx_models import of_node, session_gives

CHARACTERS = [
    "",
    "a",
    "b",
    "A",
    "é",
    "É",
    "1",
    " ",
    "\n",
    ".",
    "-",
    "_",
    "\t",
    "\v",
    "\xa0",
    "٣",
    "K",
    "\u017f",
    "s",
    "k",
]
TEXTS = ["".join(entry) for entry in itertools.product(CHARACTERS, CHARACTERS, ["", "a", "\n"])]
PATTERNS = [
    "", "a", ".", r"\d", r"\w+", r"\s", r"[a-c]", r"[^a]", "(a|b)", "(?:ab)", "^a", "a$", "a$\n", r"a\b.", r"a\B.",
    "a*", "a+b?", "a{2}", "a{1,2}", "a{,2}", "é", r"\pL", r"\p{Lu}", r"\PL", r"\p{^Lu}", r"\pN", "[[:alpha:]]",
    "[[:^alpha:]]", "(?i)a", "(?i)k", "(?i)s", "(?i)É", "(?i)[a-k]", "(?i:é)a", "((?i)a)a", r"\.", r"\n", r"[\d-]",
    "(?P<n>a)b", "(?<n>a)b", r"\x41", r"\x{e9}", "|", "a|", r"\Qa.\E.", r"\Qa", "(?s).+", "(?s:.)a", r"\A.\z", "[]a]",
    "[a-]", r"\W\S\D", "{", "}", "-", "(?m)^a$", "(?m)a$\n^.", "(?U)a+", "(?-s).", r"\_", r"[\W]", r"[^\w]", "()",
    "(|a)*", "(a*)*", "a??b", "[[:word:]]+", r"[^\s\d]", r"[\t-é]", "(?i)[^a]", r"[a\]]", r"[\p{Lu}a]", r"[\D]",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_match_what_re2_matches(pattern):
    made, arrays = of_node("RegexFullMatch", np.array(TEXTS, object), opset=20, pattern=pattern)
    (expected,) = session_gives(made, arrays).values()

    found = [regular_expression(pattern).full_match(text) for text in TEXTS]
    assert [text for text, one, other in zip(TEXTS, found, expected, strict=True) if one != other] == []


WRONG = {
    "(": "has a ( without its )", ")": "has a ) without its (", "[": "ends too early", "a\\": "ends too early",
    "*a": "has nothing before * to repeat", "a|+": "has nothing before + to repeat", "a**": "repeats a repetition",
    "a++": "repeats a repetition", "a{2}{3}": "repeats a repetition", "a{1001}": "repeats 1001 to 1001 times",
    "a{2,1}": "repeats 2 to 1 times", "a{99999999}": "repeats more than 1000 times", "[b-a]": "has the range b-a",
    "[a-\\d]": "ends with a class", "(?=a)": "has a group that RE2 does not have", "(?<=a)": "has a group",
    "(?>a)": "has a group", "(?#a)": "has a group", "\\1": "has \\1", "\\Z": "has \\Z", "\\h": "has \\h",
    "\\é": "has \\é", "[\\b]": "has \\b", "[[:foo:]]": "has the class [:foo:]",
    "\\x{110000}": "beyond those of Unicode",
}  # fmt: skip


@pytest.mark.parametrize("pattern", WRONG)
def test_pattern_that_re2_refuses_is_refused(pattern):
    made, arrays = of_node("RegexFullMatch", np.array([""], object), opset=20, pattern=pattern)

    with pytest.raises(Exception, match=r"(?i)regex|pattern"):
        session_gives(made, arrays)
    with pytest.raises(LayerError) as error:
        RegularExpression(pattern)
    assert WRONG[pattern] in error.value.what


@pytest.mark.parametrize("pattern", [r"\0", r"\C", r"\p{Greek}", "(" * 101 + ")" * 101, "(a{1000}){1000}"])
def test_pattern_that_only_netloop_refuses_is_refused(pattern):
    with pytest.raises(LayerError):
        RegularExpression(pattern)


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|a)*b", "(a|aa)+b", "(.*)(.*)(.*)(.*)b"])
def test_time_is_linear_where_backtracking_is_exponential(pattern):
    began = time.perf_counter()

    assert not RegularExpression(pattern).full_match("a" * 20_000)
    assert time.perf_counter() - began < 60


def test_memory_of_transitions_is_limited():
    expression = RegularExpression(r"[^a]*")

    assert expression.full_match("".join(map(chr, range(200, 200 + 2 * MOST_STEPS))))
    assert sum(len(place.following) for place in expression._places.values()) <= MOST_STEPS


def test_matches_are_the_longest_from_the_left():
    expression = RegularExpression("a|ab|c*")

    assert [*expression.matches("xabaccc")] == [(1, 3), (3, 4), (4, 7)]


@pytest.mark.parametrize(
    "pattern",
    ["a+", r"\w+", r"[^a]+", "[a-c_]+", r"\S+", r"[\]^-]+", "[^-a]+", "(?i)a+", "[é-ü\\\\]+", r"[\d.]+", r"\b\w+"],
)
def test_runs_of_characters_are_those_of_the_automaton(pattern):
    expression = RegularExpression(pattern)

    for text in [*TEXTS, "".join(TEXTS), "a]b^c-\\é\nü", "\r\v\f "]:
        assert [*expression.matches(text)] == [*expression._longest_matches(text)]


@given(st.text(alphabet="ab(|)*+?[]^-\\dw.{1,}$", max_size=12), st.text(alphabet="ab1-\\", max_size=4))
def test_any_pattern_is_read_or_refused(pattern, text):
    with suppress(LayerError):
        RegularExpression(pattern).full_match(text)
