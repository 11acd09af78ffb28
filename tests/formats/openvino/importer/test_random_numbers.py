"""The distributions of random numbers."""

import numpy as np
import pytest

import netloop
from tests.support.openvino_models import F, load, ops, ov
from tests.support.openvino_peer import case, fixed


@pytest.mark.parametrize("type", ["f16", "f32", "i32", "i64"])
def test_uniform_numbers_are_drawn_within_their_bounds(type):
    ends = [ops.convert(ops.constant(F(number)), type) for number in (-2, 5)]
    drawn = ops.random_uniform(ops.constant(np.int64([40, 25])), *ends, type)
    (numbers,) = netloop.evaluate(load(ov.Model([ops.result(drawn)], [])), {}).values()

    assert numbers.shape == (40, 25)
    assert -2 <= numbers.min() < -1
    assert 4 <= numbers.max() < 5
    assert abs(numbers.astype(float).mean() - (1 if type.startswith("i") else 1.5)) < 0.3


@pytest.mark.parametrize("log", [False, True])
def test_classes_are_drawn_as_often_as_they_are_probable(log):
    shares = F([[0.5, 0.25, 0.25, 0]])
    given = np.log(shares, where=shares > 0, out=F([[-np.inf] * 4])) if log else shares
    model = case("Multinomial", given, fixed(np.int64(2000)), convert_type="i64", with_replacement=True, log_probs=log,
                 global_seed=1, op_seed=1).model()  # fmt: skip
    (drawn,) = netloop.evaluate(load(model), {"x0": given}).values()

    np.testing.assert_allclose(np.bincount(drawn[0], minlength=4) / 2000, shares[0], atol=0.05)


def test_classes_drawn_without_replacement_are_different():
    shares = F([[0.4, 0.3, 0.2, 0.1]])
    model = case("Multinomial", shares, fixed(np.int64(4)), convert_type="i32", with_replacement=False, log_probs=False,
                 global_seed=1, op_seed=1).model()  # fmt: skip
    (drawn,) = netloop.evaluate(load(model), {"x0": shares}).values()

    assert sorted(drawn[0].tolist()) == [0, 1, 2, 3]
