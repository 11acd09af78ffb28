"""``netloop explain``: a code, or all of them."""

import pytest

from netloop.values.diagnostics import CODES


def test_text_of_a_code(run):
    done = run("explain nl204")

    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("NL204 (portability): ")


def test_without_a_code_all_are_listed_on_one_line_each(run):
    lines = run("explain").out.splitlines()
    listed = [line.split()[0] for line in lines if line.startswith("  NL")]

    assert listed == sorted(CODES)
    assert all(len(line) <= 110 for line in lines)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("NL2O4", "there is no code 'NL2O4'; did you mean 'NL204'?\n"),
        ("NL399", "there is no code 'NL399'; there are 'NL301', 'NL302', 'NL303', 'NL304', 'NL305'\n"),
        ("NL999", "there is no code 'NL999'; NL1xx are about wiring: inputs, outputs and names; "),
        ("hello", "there is no code 'hello'; NL1xx are about wiring: inputs, outputs and names; "),
    ],
)
def test_unknown_code_has_a_suggestion_on_one_line(run, code, says):
    done = run(f"explain {code}")

    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(says)
    assert done.err.count("\n") == 1
