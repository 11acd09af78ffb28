"""The warning of the first engine of a process that runs on the CPU where a GPU is expected."""

import operator
import warnings
from functools import cache

import jax

from netloop.model.graph.call_site import call_site
from netloop.process.idle_gpu import idle_gpu
from netloop.values.diagnostics import DeviceWarning

asked_for = operator.attrgetter("jax_platforms")
"""The platforms that the user has asked for, in the environment or by ``jax.config``."""


@cache
def warn_of_idle_gpu() -> None:
    """Issue a ``DeviceWarning``, once, if there is a GPU or a plugin for one, and JAX runs programs on the CPU."""
    if jax.default_backend() != "cpu" or asked_for(jax.config):
        return
    finding = idle_gpu(on_cpu=True)
    if finding is not None:
        place = call_site()
        warnings.warn_explicit(DeviceWarning(finding), None, place.file, place.line)
