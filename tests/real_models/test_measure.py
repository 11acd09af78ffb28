"""Comparisons of one model with other runtimes."""

import numpy as np
import pytest

from tests.real_models.measure import Expected, compare

ONES = np.ones(3, np.float32)


@pytest.mark.parametrize(("first", "second", "agrees", "agrees_with_second"), [
    (ONES, ONES, True, True),
    (ONES * 2, ONES, False, True),
    (ONES, ONES * 2, True, False),
])  # fmt: skip
def test_outputs_are_compared_with_both_runtimes(first, second, agrees, agrees_with_second):
    result = compare([ONES], Expected([first], [0.0], [second]))

    assert (result["agrees"], result["agrees_with_second"]) == (agrees, agrees_with_second)


def test_without_a_second_runtime_one_decides():
    assert compare([ONES], Expected([ONES * 2], [0.0])) == {"error": 0.5, "noise": 0.0, "agrees": False}
