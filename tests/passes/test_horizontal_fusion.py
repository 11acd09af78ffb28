"""Products of one operand become one product."""

import pytest

import netloop as trt
from tests.support.cells import lstm
from tests.support.networks import chain_in_loop
from tests.support.pass_checks import count, improved

pytestmark = pytest.mark.usefixtures("low_thresholds")


def test_gates_become_one_product_of_the_input_one_of_the_state_and_one_sum():
    network = lstm()
    shared = improved(network, ["horizontal_fusion"])

    assert len(shared.notes) == 2
    assert [count(each, trt.IMatrixMultiplyLayer) for each in (network, shared.network)] == [8, 2]
    # four are in the cell itself
    assert [count(each, trt.IElementWiseLayer) for each in (network, shared.network)] == [12, 6]


def test_network_without_products_is_left_alone():
    network = chain_in_loop(3)

    assert improved(network, ["horizontal_fusion"]).network is network
