"""The thresholds of tests of passes."""

import pytest

from tests.support.pass_checks import LOWEST


@pytest.fixture
def low_thresholds(monkeypatch):
    """Passes apply to networks of any size; only axes of up to 3 elements are narrow."""
    for name, limit in (LOWEST | {"netloop.passes.carry_layout.MAX_SHORT_AXIS": 3}).items():
        monkeypatch.setattr(name, limit)
