"""Extreme numbers anywhere in a model are refused, computed, or a typed error: none ends the process."""

import pytest

from tests.support.mortal_cases import is_bad, outcomes

MODULE = "tests.support.openvino_extremes"


@pytest.mark.parametrize("source", ["few", pytest.param("all", marks=[pytest.mark.slow, pytest.mark.timeout(7200)])])
def test_extreme_numbers_in_a_model_end_no_process(source):
    found = dict(outcomes(MODULE, source))

    assert [f"{case}: {text}" for case, text in found.items() if is_bad(text)] == []
    assert any("refused" in name for name in found.values())
    assert "compiled: fine, reference: fine" in found.values()
