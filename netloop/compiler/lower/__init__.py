"""Lowering: from the region tree to ``jax.lax``, a network as one JAX function.

``program.py`` runs steps in order, and layers by their ``lower`` methods; it leaves conditionals to ``conditional.py``
and loops to ``loop/entry.py``, which see it as a ``Lowering``.
"""

from netloop.compiler.lower.compilability import has_program as has_program
from netloop.compiler.lower.compilability import require_program as require_program
from netloop.compiler.lower.constants import constants_of as constants_of
from netloop.compiler.lower.program import Program as Program
