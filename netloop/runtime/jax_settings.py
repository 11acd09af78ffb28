"""The settings of JAX that engines rely on, whatever the user has set."""

import operator
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import jax

OWN: dict[str, tuple[Any, Callable[[Any], AbstractContextManager[Any]]]] = {
    "jax_disable_jit": (False, jax.disable_jit),
    "jax_debug_nans": (False, jax.debug_nans),
    "jax_numpy_dtype_promotion": ("standard", jax.numpy_dtype_promotion),
}
"""What users set to debug their own functions, and what it is while an engine is compiled or runs."""


WANTED = tuple(wanted for wanted, _ in OWN.values())
present = operator.attrgetter(*OWN)


class own_settings:
    """A context in which 64-bit types are real, and JAX does with an engine what it does by default."""

    def __enter__(self) -> None:
        self._entered: list[AbstractContextManager[Any]] = [jax.enable_x64(True)]
        if present(jax.config) != WANTED:
            self._entered += [setting(wanted) for wanted, setting in OWN.values()]
        for each in self._entered:
            each.__enter__()

    def __exit__(self, *exception: Any) -> None:
        for each in reversed(self._entered):
            each.__exit__(*exception)
