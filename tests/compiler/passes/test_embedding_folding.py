"""Tables of weights are multiplied in advance."""

import pytest

import netloop as trt
from netloop.model.nest import live_layers
from tests.support.cells import embedded
from tests.support.pass_checks import improved

pytestmark = pytest.mark.usefixtures("low_thresholds")


def test_embedding_table_is_multiplied_in_advance():
    network = embedded()
    tabled = improved(network, ["horizontal_fusion", "embedding_folding"])
    (gather,) = [layer for layer in live_layers(tabled.network) if isinstance(layer, trt.IGatherLayer)]

    assert gather.inputs[0].shape == (6, 6)
