"""Forked processes, in which JAX waits forever for the threads that it had in the parent."""

import os
import sys
from typing import Any

from netloop.values.diagnostics import ExecutionError, Finding, reason


class Fork:
    """Known facts about the forks that led to this process.

    Attributes:
        lost_jax: whether a parent had started JAX's threads, which no fork copies.
    """

    def __init__(self) -> None:
        self.lost_jax = False
        self._has_started = False

    def before(self) -> None:
        """Look at JAX in the parent: in the child, another thread's lock may be held forever."""
        self._has_started = has_started_jax()

    def in_child(self) -> None:
        """Keep in the child what was seen in the parent."""
        self.lost_jax = self.lost_jax or self._has_started


def has_started_jax() -> bool:
    """Whether this process, or one that it was forked from, has started JAX's devices."""
    # JAX has no public function that says this without starting it
    bridge: Any = sys.modules.get("jax._src.xla_bridge")
    return getattr(bridge, "backends_are_initialized", lambda: False)()


FORK = Fork()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=FORK.before, after_in_child=FORK.in_child)


def require_jax() -> None:
    """Check that JAX works in this process.

    Raises:
        ExecutionError: the process was forked from one that had used JAX.
    """
    if FORK.lost_jax:
        what = "this process was forked from one that had used JAX, so JAX does not work in it"
        fix = 'use multiprocessing.get_context("spawn"), and pass the engine to the worker'
        raise ExecutionError(Finding("NL612", what, why=reason("NL612"), fix=fix))
