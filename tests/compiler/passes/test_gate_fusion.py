"""Sigmoids are computed in their tanh form."""

import numpy as np
import pytest

import netloop as trt
from netloop.compiler.passes.gate_fusion import TANH_FORM_ERROR, FusedGatesLayer
from tests.support.cells import lstm
from tests.support.devices import assert_allclose
from tests.support.networks import Op, combine, counted, last, mark


@pytest.mark.parametrize("x", [-700.0, -20.0, -1.0, 0.0, 0.5, 30.0, 1e4])
def test_sigmoid_in_tanh_form_is_within_its_error(x):
    x = np.float32(x)
    exact = 1 / (1 + np.exp(-np.float64(x)))

    gate = FusedGatesLayer(axis=-1, sizes=[1], logistic=[1])

    assert abs(float(gate.lower(np.array([x]))[0]) - exact) <= TANH_FORM_ERROR


def test_gates_of_every_second_element_are_not_adjacent():
    network = trt.INetworkDefinition()
    loop = counted(network, 2)
    state = loop.add_recurrence(network.add_input("x", trt.float32, (6,)))
    gates = [
        network.add_activation(
            network.add_slice(state.get_output(0), (start,), (2,), (2,)).get_output(0), trt.ActivationType.TANH
        ).get_output(0)
        for start in (0, 2)
    ]
    both = network.add_concatenation([*gates, combine(network, *gates, Op.PROD)])
    both.axis = 0
    state.set_input(1, both.get_output(0))
    mark(network, y=last(loop, state.get_output(0)))
    x = {"x": np.arange(6, dtype=np.float32)}

    assert_allclose(trt.compile(network)(x)["y"], trt.evaluate(network, x)["y"], rtol=1e-6)


@pytest.mark.parametrize(("platform", "is_fused"), [("cpu", True), ("gpu", False), ("tpu", False)])
def test_gates_are_joined_for_cpus_only(platform, is_fused, monkeypatch):
    monkeypatch.setattr("jax.default_backend", lambda: platform)

    assert ("gate_fusion" in {note.by for note in trt.compile(lstm()).notes}) is is_fused
