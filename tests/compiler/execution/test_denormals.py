"""The table of denormal numbers in docs/reliability.md: the reference keeps them, and XLA on CPUs takes them for 0."""

import jax
import numpy as np
import pytest

import netloop as trt
from tests.support.devices import only_on_cpus
from tests.support.networks import Op, combine, constant, mark

TINY = np.float32(1e-40)
ON_CPU = only_on_cpus("GPUs keep denormal numbers, and the table is for CPUs")


@ON_CPU
@pytest.mark.parametrize(
    ("op", "other", "of_reference", "of_engine"),
    [
        (Op.GREATER, 0, True, False),
        (Op.EQUAL, 0, False, True),
        (Op.PROD, 1e38, TINY * np.float32(1e38), 0),
        (Op.SUM, 0, TINY, 0),
        (Op.MAX, 0, TINY, 0),
    ],
)
def test_engine_takes_denormal_numbers_for_zero_and_the_reference_does_not(network, op, other, of_reference, of_engine):
    x = network.add_input("x", trt.float32, (1,))
    mark(network, y=combine(network, x, constant(network, np.float32([other])), op))

    assert trt.evaluate(network, {"x": [TINY]})["y"][0] == of_reference
    assert trt.compile(network)({"x": [TINY]})["y"][0] == of_engine


@ON_CPU
def test_comparisons_of_denormal_numbers_are_those_of_jax():
    assert not jax.jit(lambda x: x > 0)(TINY)
    assert jax.jit(lambda x: x == 0)(TINY)


@ON_CPU
@pytest.mark.parametrize(("passes", "expected"), [(None, True), ([], False)])
def test_weights_that_numpy_folds_keep_denormal_numbers(network, passes, expected):
    weights = constant(network, np.full(4096, TINY))
    mark(network, y=combine(network, weights, constant(network, np.zeros(4096, np.float32)), Op.GREATER))

    assert bool(trt.compile(network, passes=passes)({})["y"][0]) is expected
