"""The rule by which outputs agree."""

import jax.numpy as jnp
import numpy as np
import pytest

from tests.real_models.agreement import agrees, changed, error, errors, largest_noise, leaves

ONES = np.ones(4, np.float32)


def off_by(relative: float) -> np.ndarray:
    return np.array([1, 1, 1, 1 + relative], np.float32)


@pytest.mark.parametrize(("found", "expected", "is_error"), [
    (off_by(0.5), ONES, 0.5),
    (ONES * 3, ONES * 4, 0.25),
    (np.array([1, np.nan]), np.array([1, np.nan]), 0),
    (np.array([1, np.inf]), np.array([1, np.nan]), np.inf),
    (np.array([1, 2.0]), np.array([1, np.inf]), np.inf),
    (ONES, ONES.astype(np.float64), np.inf),
    (ONES, ONES[None], np.inf),
    (np.array([1, 2, 3, 4]), np.array([1, 2, 0, 4]), 0.25),
    (np.array(["a", "b"]), np.array(["a", "longer"]), 0.5),
    (np.zeros(0, np.float32), np.zeros(0, np.float32), 0),
    (np.array([1e-3]), np.array([0.0]), 1e-3),
])  # fmt: skip
def test_error(found, expected, is_error):
    assert error(found, expected) == pytest.approx(is_error)


@pytest.mark.parametrize(("found", "noise", "good"), [
    (1e-5, 0.0, True),
    (1.1e-5, 0.0, False),
    (3.9e-4, 1e-4, True),
    (4.1e-4, 1e-4, False),
    (0.06, 1.0, False),
    (np.inf, np.inf, False),
])  # fmt: skip
def test_floats_agree_within_a_multiple_of_the_noise(found, noise, good):
    assert agrees(found, noise, ONES) == good


@pytest.mark.parametrize(("found", "noise", "good"), [(0.0, 0.0, True), (0.01, 0.01, True), (0.02, 0.01, False)])
def test_integers_agree_within_the_noise(found, noise, good):
    assert agrees(found, noise, np.arange(4)) == good


def test_errors_are_of_all_leaves_of_sequences_and_maps():
    maps = [{"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 4.0}]
    other = [{"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 5.0}]

    assert errors([maps], [maps]) == [0.0] * 4
    assert leaves(maps)[1].dtype == np.float32
    assert max(errors([other], [maps])) == pytest.approx(0.25)
    assert errors([[jnp.asarray(ONES), jnp.asarray(ONES[:2])]], [[ONES, ONES[:2]]]) == [0, 0]
    assert errors([ONES], [ONES, ONES]) == [np.inf]


def test_noise_is_the_largest_of_runs_with_the_same_shapes():
    assert largest_noise([ONES], [[off_by(0.25)], [off_by(0.5)], [ONES[:2]]]) == [0.5]


def test_weights_change_by_at_most_a_unit_unless_they_are_integers():
    weights = np.array([0.3, 1.0, 2.0, -0.7] * 50, np.float32)

    made = changed(weights, np.random.default_rng(0))

    assert set(np.unique(made[1::4])) == {1.0}
    assert len(np.unique(made[::4])) == 3
    np.testing.assert_allclose(made, weights, rtol=2.5e-7)
