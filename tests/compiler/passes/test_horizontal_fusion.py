"""Products of one operand become one product."""

import numpy as np
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
    assert [count(definition, trt.IMatrixMultiplyLayer) for definition in (network, shared.network)] == [8, 2]
    # four are in the cell itself
    assert [count(definition, trt.IElementWiseLayer) for definition in (network, shared.network)] == [12, 6]


def test_network_without_products_is_left_alone():
    network = chain_in_loop(3)

    assert improved(network, ["horizontal_fusion"]).network is network


@pytest.mark.parametrize(("rows", "is_inside"), [(124, False), (125, False), (125, True)])
def test_large_products_outside_of_loops_stay_apart(rows: int, is_inside: bool):
    """A product of 125 rows by 250 x 256 has 8,000,000 multiplications."""
    network = trt.INetworkDefinition()
    x = network.add_input("x", trt.float32, (rows, 250))
    if is_inside:
        loop = network.add_loop()
        loop.add_trip_limit(network.add_constant((), np.int32(2)).get_output(0), trt.TripLimit.COUNT)
        state = loop.add_recurrence(x)
        x = state.get_output(0)
    weights = [network.add_constant((250, 256), np.ones((250, 256), np.float32)).get_output(0) for _ in range(2)]
    none = trt.MatrixOperation.NONE
    made = [network.add_matrix_multiply(x, none, weight, none).get_output(0) for weight in weights]
    total = network.add_elementwise(*made, trt.ElementWiseOperation.SUM).get_output(0)
    if is_inside:
        part = network.add_slice(total, (0, 0), (rows, 250), (1, 1)).get_output(0)
        state.set_input(1, part)
        total = loop.add_loop_output(x, trt.LoopOutput.LAST_VALUE).get_output(0)
    network.mark_output(total)
    is_large = rows == 125 and not is_inside
    assert count(improved(network, ["horizontal_fusion"]).network, trt.IMatrixMultiplyLayer) == (2 if is_large else 1)
