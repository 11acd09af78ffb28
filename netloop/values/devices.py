"""The type of JAX's devices."""

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


def compute_capability(device: JaxDevice) -> float | None:
    """The compute capability of one of NVIDIA's GPUs, such as 9.0; None of another device."""
    # AMD's GPUs have names there, such as gfx942
    major, _, minor = str(getattr(device, "compute_capability", "")).partition(".")
    return float(f"{major}.{minor}") if major.isdecimal() and minor.isdecimal() else None


Device = JaxDevice | str
"""A device of this process, or its name: a platform of JAX, and the number among its devices if that is not 0."""
