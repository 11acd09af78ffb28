"""The type of JAX's devices."""

from __future__ import annotations

from typing import Protocol


class JaxDevice(Protocol):
    """A ``jax.Device``, of which jaxlib has no types.

    https://docs.jax.dev/en/latest/_autosummary/jax.Device.html
    """

    @property
    def platform(self) -> str: ...
    @property
    def device_kind(self) -> str: ...
    @property
    def process_index(self) -> int: ...
    def memory_stats(self) -> dict[str, int] | None: ...


Device = JaxDevice | str
"""A device of this process, or its name: a platform of JAX, and the number among its devices if that is not 0."""
