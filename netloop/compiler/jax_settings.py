"""Pin JAX's global settings (64-bit types, jit, NaN checks, promotion) while an engine is compiled or runs."""

import operator
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import jax

from netloop.model.device_errors import DEVICE_ERRORS, device_finding
from netloop.process.forked import FORK, require_jax
from netloop.values.devices import JaxDevice
from netloop.values.diagnostics import ExecutionError

PINNED: dict[str, tuple[Any, Callable[[Any], AbstractContextManager[Any]]]] = {
    "jax_disable_jit": (False, jax.disable_jit),
    "jax_debug_nans": (False, jax.debug_nans),
    "jax_numpy_dtype_promotion": ("standard", jax.numpy_dtype_promotion),
}
"""Settings that users change to debug their own functions, with the value that engines need."""

WANTED = tuple(wanted for wanted, _ in PINNED.values())
present = operator.attrgetter(*PINNED)


def settings_are_wanted() -> bool:
    """Whether JAX works in this process, and the user has left the settings that engines need as they are."""
    return not FORK.lost_jax and present(jax.config) == WANTED


class pinned_settings:
    """A context with 64-bit types and JAX's default behaviour, whatever the user has set.

    Args:
        device: the default device in it; None for the one that is the default.

    Raises:
        ExecutionError: this process is a fork that cannot use JAX; at exit, the compiler, the device or memory failed.
    """

    def __init__(self, device: JaxDevice | None = None) -> None:
        self._device = device

    def __enter__(self) -> None:
        require_jax()
        self._entered: list[AbstractContextManager[Any]] = [jax.enable_x64(True)]
        if self._device is not None:
            self._entered.append(jax.default_device(self._device))
        if present(jax.config) != WANTED:
            self._entered += [setting(wanted) for wanted, setting in PINNED.values()]
        for manager in self._entered:
            manager.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *rest: Any) -> None:
        for manager in reversed(self._entered):
            manager.__exit__(kind, error, *rest)
        if isinstance(error, DEVICE_ERRORS):
            raise ExecutionError(device_finding(error)) from error
