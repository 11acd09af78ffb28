"""Narrow states are carried with their long axis last."""

import pytest

import netloop as trt
from netloop.model.nest import live_layers
from tests.support.cells import remembered, selective
from tests.support.pass_checks import improved

pytestmark = pytest.mark.usefixtures("low_thresholds")


def carried(network):
    """The shapes of the states."""
    return [layer.outputs[0].shape for layer in live_layers(network) if isinstance(layer, trt.IRecurrenceLayer)]


@pytest.mark.parametrize("by_einsum", [False, True])
def test_state_has_its_longer_axis_last(by_einsum):
    assert carried(improved(selective(by_einsum=by_einsum), ["matmul_recognition", "carry_layout"]).network) == [
        (2, 3, 4)
    ]


def test_states_of_an_inner_loop_have_their_axes_swapped_with_those_around():
    network = improved(remembered(), ["carry_layout"])

    assert len(network.notes) == 1
    assert carried(network.network) == [(3, 4), (3, 4)]
