"""The thresholds of tests of passes."""

import pytest

from netloop.compiler import passes
from netloop.model.check import require_valid
from tests.support.pass_checks import LOWEST


@pytest.fixture(autouse=True)
def rewritten_networks_are_checked(monkeypatch):
    """What passes made is checked as what users make, which costs too much in each compilation."""

    def improved(network, types, validated, notes, *refusals):
        if notes:
            require_valid(network)
        return Improved(network, types, validated, notes, *refusals)

    Improved = passes.Improved
    monkeypatch.setattr(passes, "Improved", improved)


@pytest.fixture
def low_thresholds(monkeypatch):
    """Passes apply to networks of any size; only axes of up to 3 elements are narrow."""
    for name, limit in (LOWEST | {"netloop.compiler.passes.carry_layout.MAX_SHORT_AXIS": 3}).items():
        monkeypatch.setattr(name, limit)
