"""From regions to ``jax.lax``: a network as a JAX function."""

from netloop.lower.host import HostProgram as HostProgram
from netloop.lower.host import Spoilt as Spoilt
from netloop.lower.host import is_long as is_long
from netloop.lower.program import Program as Program
from netloop.lower.program import constants_of as constants_of
from netloop.lower.program import has_program as has_program
