"""Limits that a process sets for itself, where the system has them."""

import os
import time

try:
    import resource
except ImportError:  # Windows has none
    resource = None


def limit_process(memory: int | None) -> None:
    """Limit the address space of this process to ``memory`` bytes, and let it write neither files nor core dumps."""
    if resource is None:
        return
    if memory is not None:
        _limit(resource.RLIMIT_AS, memory)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)


def limit_cpu(seconds: float) -> None:
    """Limit the CPU time of this process to what all cores use in so many seconds, from now.

    The caller counts the seconds. This limit ends a process whose caller was killed while it waited.
    """
    if resource is not None:
        more = seconds * (os.cpu_count() or 1)
        _limit(resource.RLIMIT_CPU, int(time.process_time() + more) + 1)


def _limit(kind: int, most: int) -> None:
    assert resource is not None
    _, hard = resource.getrlimit(kind)
    try:
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    except (ValueError, OSError):  # macOS refuses a limit of the address space
        return
