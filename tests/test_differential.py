"""Engine against reference, on random networks."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import netloop as trt
from tests.strategies import Grown, networks

SETTINGS = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "print_blob": True,
    "report_multiple_bugs": False,
}


def agree(grown: Grown) -> None:
    errors = [str(each) for each in trt.check(grown.network) if each.severity is trt.Severity.ERROR]
    assert not errors, "\n".join(errors)
    meant = trt.evaluate(grown.network, grown.inputs)
    engine = trt.compile(grown.network)
    got = engine(grown.inputs)
    for name, wanted in meant.items():
        assert got[name].dtype == wanted.dtype
        np.testing.assert_array_equal(np.asarray(got[name]), wanted)


@settings(max_examples=40, **SETTINGS)
@given(networks(depth=2))
def test_engine_gives_exactly_what_the_reference_means(grown):
    agree(grown)


@pytest.mark.slow
@settings(max_examples=2000, **SETTINGS)
@given(networks(depth=4))
def test_engine_gives_exactly_what_the_reference_means_at_length(grown):
    agree(grown)
