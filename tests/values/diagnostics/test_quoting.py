"""Texts in messages."""

import pytest

import netloop as trt
from netloop.values.diagnostics import Finding, did_you_mean, listed, quoted
from netloop.values.diagnostics.quoting import LONGEST_FIELD, printable, shortened


def test_short_text_is_quoted_whole():
    assert quoted("it's") == '"it\'s"'


def test_long_text_has_its_beginning_its_end_and_its_length():
    assert quoted("a" * 500 + "b" * 500) == f"'{'a' * 50}'...'{'b' * 25}' (1000 characters)"


def test_long_bytes_are_cut_too():
    assert quoted(b"\0" * 1000).endswith("(1000 bytes)")


@pytest.mark.parametrize("character", ["\n", "\r", "\x1b", "\0", "\u2028", "\u202e", "\ud800", "\x9b"])
def test_characters_that_could_change_a_log_are_escaped(character):
    assert quoted(f"a{character}b").isprintable()
    assert character not in quoted("a" * 1000 + character)


def test_other_values_are_cut_as_their_text():
    assert len(quoted(list(range(100_000)))) <= 500


def test_text_is_cut_in_the_middle():
    assert shortened("a" * 3000 + "b" * 3000, 100) == f"{'a' * 50} ...(6000 characters)... {'b' * 25}"
    assert shortened("a" * 100, 100) == "a" * 100


def test_fields_of_findings_are_bounded():
    huge = "x" * 1_000_000
    found = Finding("NL401", huge, huge, huge, huge)

    assert max(map(len, (found.what, found.where, found.why, found.fix))) == LONGEST_FIELD
    assert len(str(found)) < 10_000


def test_no_line_of_a_finding_looks_like_another_finding():
    found = Finding("NL401", "the name is wrong\nNL999: all is lost", "a.py\r:1\x1b[2J")

    assert str(found) == "NL401: the name is wrong\n    NL999: all is lost\n  at a.py\\r:1\\x1b[2J"


def test_printable_keeps_newlines_and_tabs():
    assert printable("a\n\tb\0\udc80\u2029") == "a\n\tb\\x00\\udc80\\u2029"


def test_similar_name_is_looked_for_in_bounded_time():
    assert did_you_mean("x" * 1_000_000, ["x" * 999_999]) == ""
    assert did_you_mean("hidden", [*map(str, range(100_000)), "hiden"]) == ""
    assert did_you_mean("hiden", ["hidden", "x" * 1_000_000]) == "did you mean 'hidden'?"
    assert did_you_mean("X", ["x", "y"]) == "did you mean 'x'?"


def test_listed_names_are_cut():
    assert len(listed(["x" * 1_000_000] * 100)) < 1000


def test_names_in_json_are_cut():
    network = trt.INetworkDefinition()
    network.name = "x" * 1_000_000

    assert len(Finding("NL401", "it is wrong", at=network).as_json()["where"]["layer"]) == LONGEST_FIELD
