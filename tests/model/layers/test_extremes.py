"""Extreme numbers anywhere in a layer are refused, computed, or a typed error: none ends the process."""

import pytest

from tests.support.mortal_cases import is_bad, outcomes

MODULE = "tests.support.extremes"


@pytest.mark.slow
def test_what_has_ended_the_process_is_an_error():
    found = dict(outcomes(MODULE, "fatal"))

    assert len(found) == 10
    assert [f"{case}: {text}" for case, text in found.items() if is_bad(text)] == []
    assert "refused" in found.values()
    assert "compiled: ExecutionError NL608, reference: ExecutionError NL608" in found.values()


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("source", ["cases", "combinations"])
def test_extreme_numbers_end_no_process(source):
    found = [f"{case}: {text}" for case, text in outcomes(MODULE, source) if is_bad(text)]

    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "few",
        *(
            pytest.param(name, marks=[pytest.mark.slow, pytest.mark.timeout(7200)])
            for name in ("cases", "combinations")
        ),
    ],
)
def test_extreme_numbers_of_loops_end_no_process(source):
    found = dict(outcomes("tests.support.loop_extremes", source))

    assert [f"{case}: {text}" for case, text in found.items() if is_bad(text)] == []
    assert any("refused" in name for name in found.values())
    assert any("fine" in name for name in found.values())
