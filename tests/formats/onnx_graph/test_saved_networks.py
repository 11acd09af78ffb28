"""Random loops and conditionals, saved in both formats, against the reference, engines and both runtimes."""

import pytest

from tests.support.examples import SCALE
from tests.support.saved_law import SavedLaw

for runtime in ("onnxruntime", "openvino"):
    pytest.importorskip(runtime)

FAST, BLOCK = 25, 25
SLOW = 200 * SCALE
WITH_ENGINE = 25
"""Of the first networks, one of so many is compiled too: that takes longer than all of the rest."""


@pytest.fixture(scope="module")
def law():
    made = SavedLaw()
    yield made
    made.process.stop()


def require_none(failures):
    reports = list(failures)
    assert not reports, "\n".join([f"{len(reports)} failures", *reports])


@pytest.mark.parametrize("first", range(0, FAST, BLOCK))
def test_saved_network_gives_the_same_in_other_runtimes(law, first):
    require_none(law.failures(range(first, first + BLOCK), lambda number: not number % WITH_ENGINE))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(FAST, 100 + SLOW, BLOCK))
def test_saved_network_gives_the_same_in_other_runtimes_and_engines_at_length(law, first):
    require_none(law.failures(range(first, first + BLOCK), lambda number: True))
