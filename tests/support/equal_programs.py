"""Programs that XLA compiles once: one in four that tests compile is equal to one that was compiled just before.

JAX compares functions, and each network is a new one; only their texts are equal. Executables keep no state, so that
engines can share them. Programs that call back into Python are compiled each time: the calls are not in the text.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import jax
from jax._src import compiler

KEPT = 300
"""The executables that are kept, the last used ones; nearly all equal programs are of one file of tests."""

_compile_of_jax = compiler.compile_or_get_cached
_executables: dict[tuple[Any, ...], Any] = {}


@contextmanager
def equal_programs_share_executables() -> Iterator[None]:
    """Have JAX take the executable of an equal program, compiled with the same options for the same devices."""
    with patch.object(compiler, "compile_or_get_cached", _compiled):
        yield


def _compiled(
    backend: Any, module: Any, devices: Any, options: Any, host_callbacks: Any, *more: Any, **named: Any
) -> Any:
    def compiled() -> Any:
        return _compile_of_jax(backend, module, devices, options, host_callbacks, *more, **named)

    if host_callbacks or jax.config.jax_compilation_cache_dir:
        return compiled()
    text = module.operation.get_asm(enable_debug_info=False, binary=True)
    key = backend, hashlib.sha256(text).digest(), options.SerializeAsString(), tuple(devices.flat)
    executable = _executables.pop(key, None) or compiled()
    _executables[key] = executable  # the last used one is the last
    if len(_executables) > KEPT:
        _executables.pop(next(iter(_executables)))
    return executable
