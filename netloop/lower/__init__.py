"""Lowering: from the region tree to ``jax.lax``, a network as one JAX function.

=====================  ==============================================================================
``program.py``         ``Program``: runs steps in order, and layers by their ``lower`` methods
``interface.py``       ``Lowering``: what loops and conditionals see of the program around them
``frame.py``           ``Frame``: the values and error flags at a point of a program
``error_flags.py``     how an error leaves a compiled program, which cannot raise
``constants.py``       which tensors are compile-time constants, and which constants are arguments
``requirements.py``    which networks and layers a program can hold
``weight_folding.py``  what is computed from weights at load time
``conditional.py``     a conditional as ``lax.cond``, or as a selection between both branches
``loop/``              a loop as ``lax.scan`` or ``lax.while_loop``
=====================  ==============================================================================
"""

from netloop.lower.constants import constants_of as constants_of
from netloop.lower.program import Program as Program
from netloop.lower.requirements import has_program as has_program
