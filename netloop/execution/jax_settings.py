"""What engines rely on where JAX works for them, whatever the user has set."""

import operator
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import jax

from netloop.diagnostics import ExecutionError, Finding, reason

OWN: dict[str, tuple[Any, Callable[[Any], AbstractContextManager[Any]]]] = {
    "jax_disable_jit": (False, jax.disable_jit),
    "jax_debug_nans": (False, jax.debug_nans),
    "jax_numpy_dtype_promotion": ("standard", jax.numpy_dtype_promotion),
}
"""What users set to debug their own functions, and what it is while an engine is compiled or runs."""


WANTED = tuple(wanted for wanted, _ in OWN.values())
present = operator.attrgetter(*OWN)


class on_device:
    """A context in which 64-bit types are real, and JAX does with an engine what it does by default.

    Raises:
        ExecutionError: at its end, where the compiler or the device gave up.
    """

    def __enter__(self) -> None:
        self._entered: list[AbstractContextManager[Any]] = [jax.enable_x64(True)]
        if present(jax.config) != WANTED:
            self._entered += [setting(wanted) for wanted, setting in OWN.values()]
        for each in self._entered:
            each.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *rest: Any) -> None:
        for each in reversed(self._entered):
            each.__exit__(kind, error, *rest)
        if isinstance(error, jax.errors.JaxRuntimeError):
            raise ExecutionError(Finding("NL608", f"the device gave up: {error}", why=reason("NL608"))) from error
