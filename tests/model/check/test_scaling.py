"""The work of the check grows with the size of a network, whatever its nest is."""

import pytest

import netloop as trt
from netloop.compiler.passes import PASSES, improve
from netloop.model.check import require_valid
from tests.support.calls import calls_in
from tests.support.nests import FAMILIES, NESTS


@pytest.mark.parametrize("family", FAMILIES)
def test_twice_the_network_takes_twice_the_work(family):
    small, large = FAMILIES[family](50), FAMILIES[family](100)

    assert calls_in(trt.check, large) < 2.3 * calls_in(trt.check, small)


@pytest.mark.parametrize("family", sorted(FAMILIES.keys() - {"shift register"}))
def test_twice_the_network_takes_twice_the_work_of_passes(family):
    small, large = (_Improvable(FAMILIES[family](size)) for size in (45, 90))

    assert calls_in(large.improve) < 2.1 * calls_in(small.improve)


class _Improvable:
    def __init__(self, network):
        self.network = network
        self.validated = require_valid(network)

    def improve(self):
        improve(self.network, self.network.types, self.validated, PASSES)


@pytest.mark.parametrize("nest", NESTS)
def test_nest_of_a_thousand_is_checked(nest):
    errors = [finding for finding in trt.check(NESTS[nest](1000)) if finding.severity is trt.Severity.ERROR]

    assert errors == []


def test_entangled_loops_in_a_deep_nest_are_one_finding():
    network = FAMILIES["loops"](200)
    states = [layer for layer in network.layers if isinstance(layer, trt.IRecurrenceLayer)]
    states[0].set_input(1, states[-1].get_output(0))
    errors = [finding.code for finding in trt.check(network) if finding.severity is trt.Severity.ERROR]

    assert errors == ["NL209"]
