"""Decisions are found again for the same program on the same machine, and for nothing else."""

import numpy as np
import pytest

import netloop as trt
from netloop.compiler.passes import OFF, RULE
from netloop.compiler.tuning import Decisions, TimingCacheValue, digest_of, this_machine
from tests.support.cells import lstm
from tests.support.networks import mark

NAMES = ["gate_fusion", "weight_prepacking"]


def test_decisions_are_found_again():
    decisions = Decisions({}, "here", "network")
    decisions.remember({"gate_fusion": OFF, "weight_prepacking": RULE}, 0.002)

    assert decisions.known(NAMES) == {"gate_fusion": OFF, "weight_prepacking": RULE}
    assert {value.timingMSec for value in decisions.entries.values()} == {2.0}


def test_form_that_a_pass_does_not_have_is_not_known():
    decisions = Decisions({}, "here", "network")
    decisions.remember({"gate_fusion": OFF}, 0.002)
    for key in decisions.entries:
        decisions.entries[key] = TimingCacheValue(12345, 1.0)

    assert decisions.known(NAMES) == {}


def renamed(network):
    for layer in network.layers:
        layer.name = f"other {layer.name}"
    for tensor in network.inputs:
        tensor.name = f"other {tensor.name}"
    return network


def digest(network, options=()):
    return digest_of(
        network, {tensor.name: np.zeros(tensor.shape, tensor.type.dtype) for tensor in network.inputs}, options
    )


def test_names_do_not_change_the_digest():
    assert digest(renamed(lstm())) == digest(lstm())


@pytest.mark.parametrize("other", [lstm(trips=6), lstm(batch=2), lstm(size=4)])
def test_sizes_change_the_digest(other):
    assert digest(other) != digest(lstm())


def test_options_change_the_digest():
    assert digest(lstm(), (1,)) != digest(lstm(), (2,))


def open_doubling():
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (-1,))
    return mark(network, y=network.add_elementwise(x, x, trt.ElementWiseOperation.SUM).get_output(0))


def test_shapes_of_inputs_change_the_digest():
    network = open_doubling()
    of_two, of_three = (digest_of(network, {"x": np.zeros(number, np.float32)}, ()) for number in (2, 3))

    assert of_two != of_three


def test_machine_is_named_by_its_threads_and_compiler(monkeypatch):
    monkeypatch.setattr("netloop.compiler.tuning.machine.cores", lambda: 7)

    assert "7 threads" in this_machine()
    assert "jaxlib" in this_machine()


def test_instructions_that_xla_may_use_are_part_of_the_machine(monkeypatch):
    before = this_machine()
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_max_isa=AVX2")

    assert this_machine() != before
