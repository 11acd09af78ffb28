"""Random functions as networks."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.jax_functions import check_same
from tests.support.jax_programs import arguments, random_function


@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 16), st.integers(0, 2), st.integers(1, 6))
def test_network_of_a_random_function_computes_what_it_does(seed, depth, most):
    check_same(random_function(seed, depth, most), *arguments(seed), rtol=2e-4, atol=2e-5)
