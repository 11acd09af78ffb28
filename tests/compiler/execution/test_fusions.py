"""Engine against reference on random networks of products and reductions, which XLA's CPU compiler fuses.

The faults of XLA that were seen in such programs are in decision 38. Without what netloop does about them, of the
first 300 networks some tens are wrong.
"""

import pytest

from tests.support.examples import SCALE
from tests.support.fused_networks import fused_network, wrong_numbers

BLOCK = 100
NETWORKS = range(0, 500 * SCALE, BLOCK)
WITHOUT_PASSES = range(5000, 5000 + 100 * SCALE, BLOCK)


def all_wrong_numbers(numbers, **options):
    """What is wrong in networks, by their numbers; all are run, since one fault of XLA may hide another."""
    wrong = {number: wrong_numbers(fused_network(number), **options) for number in numbers}
    return "\n\n".join(f"network {number}, {text}" for number, text in wrong.items() if text)


def test_engines_of_fused_networks_give_what_the_reference_does():
    assert all_wrong_numbers(range(6)) == ""


@pytest.mark.slow
@pytest.mark.parametrize("first", NETWORKS)
def test_engines_of_fused_networks_give_what_the_reference_does_at_length(first):
    assert all_wrong_numbers(range(first, first + BLOCK)) == ""


@pytest.mark.slow
@pytest.mark.parametrize("first", WITHOUT_PASSES)
def test_engines_of_fused_networks_without_passes_give_what_the_reference_does(first):
    assert all_wrong_numbers(range(first, first + BLOCK), passes=()) == ""
