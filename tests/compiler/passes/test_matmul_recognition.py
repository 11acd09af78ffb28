"""Sums of products become matrix products, and einsums without a sum element-wise products."""

import pytest

import netloop as trt
from tests.support.cells import attention, selective
from tests.support.pass_checks import count, improved

pytestmark = pytest.mark.usefixtures("low_thresholds")


def test_sums_of_products_become_matrix_products():
    network = attention()

    assert count(improved(network, ["matmul_recognition"]).network, trt.IMatrixMultiplyLayer) == 2


def test_einsum_that_sums_over_nothing_is_an_element_wise_product():
    network = selective(by_einsum=True)
    plain = improved(network, ["matmul_recognition"]).network

    assert [count(definition, trt.IEinsumLayer) for definition in (network, plain)] == [2, 1]
