import io

import pytest

import netloop as trt
from netloop.tools.cli.colours import coloured


class Terminal(io.StringIO):
    def isatty(self):
        return True


FINDING = trt.Finding("NL402", "'x' makes float64[3]", severity=trt.FindingSeverity.PORTABILITY)


@pytest.fixture(autouse=True)
def _colours_wanted(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)


def test_severity_is_coloured_on_a_terminal():
    assert coloured(FINDING, Terminal()) == "\x1b[36mNL402 (portability)\x1b[0m: 'x' makes float64[3]"


def test_file_has_no_colours():
    assert coloured(FINDING, io.StringIO()) == str(FINDING) == "NL402 (portability): 'x' makes float64[3]"


def test_user_turns_colours_off(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")

    assert coloured(FINDING, Terminal()) == str(FINDING)
