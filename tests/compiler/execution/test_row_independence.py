"""How close the rows of two programs are for which the rows around them differ."""

import numpy as np
import pytest

from netloop.compiler.execution.row_independence import _close
from tests.support.rounding_devices import rounded

RANDOM = np.random.default_rng(0)
A, B = (10 * RANDOM.normal(size=(64, 64)).astype(np.float32) for _ in range(2))
ROWS = A @ B


@pytest.mark.parametrize("rounds", [False, True])
def test_rows_that_depend_on_others_are_not_close(rounds):
    assert _close(ROWS, ROWS * np.float32(1 + 1e-6), rounds)
    assert not _close(ROWS, ROWS + ROWS.mean(0), rounds)
    assert not _close(ROWS, ROWS[:1], rounds)


def test_programs_may_round_the_operands_of_products_otherwise():
    other = (rounded(A, 10) @ rounded(B, 10)).astype(np.float32)

    assert _close(ROWS, other, rounds=True)
    assert not _close(ROWS, other, rounds=False)
