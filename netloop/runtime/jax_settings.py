"""The settings of JAX that engines rely on, whatever the user has set."""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import jax

OWN: dict[str, tuple[Any, Callable[[Any], AbstractContextManager[Any]]]] = {
    "jax_disable_jit": (False, jax.disable_jit),
    "jax_debug_nans": (False, jax.debug_nans),
    "jax_numpy_dtype_promotion": ("standard", jax.numpy_dtype_promotion),
}
"""What users set to debug their own functions, and what it is while an engine is compiled or runs."""


@contextmanager
def own_settings() -> Generator[None]:
    """64-bit types are real, and JAX does with an engine what it does by default."""
    with ExitStack() as settings:
        settings.enter_context(jax.enable_x64(True))
        for name, (wanted, setting) in OWN.items():
            if getattr(jax.config, name) != wanted:
                settings.enter_context(setting(wanted))
        yield
