"""From regions to ``jax.lax``: a network as a JAX function."""

from netloop.lower.program import Program as Program
from netloop.lower.program import constants_of as constants_of
from netloop.lower.program import has_program as has_program
