"""The device on which an engine computes, and what moves there."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import jax
from jax.sharding import SingleDeviceSharding

from netloop.compiler.jax_settings import pinned_settings
from netloop.values.devices import Device, JaxDevice
from netloop.values.diagnostics import Finding, InputError, did_you_mean, listed, reason
from netloop.values.types import Tensors

NAME = re.compile(r"([a-z_]+)(?::(\d+))?")
"""The name of a device: ``cpu``, ``gpu``, ``cuda:1``."""

default_device = operator.attrgetter("jax_default_device")

K = TypeVar("K")


@dataclass(frozen=True)
class Placement:
    """The device on which the programs of an engine run.

    Attributes:
        device: the device.
        platform: JAX's name of its platform.
        is_chosen: whether its caller chose it. Outputs are then committed to it, as an array is that JAX was asked to
            put on a device; the others JAX may move to the devices of the arrays with which a caller combines them.
    """

    device: JaxDevice
    platform: str
    is_chosen: bool = False

    @staticmethod
    def default() -> Placement:
        """The placement on JAX's default device, as it is now."""
        present: Device | None = default_device(jax.config)  # JAX itself takes the name of a platform too
        if present is None:
            return Placement(jax.local_devices()[0], jax.default_backend())
        return Placement.on(jax.local_devices(backend=present)[0] if isinstance(present, str) else present)

    @staticmethod
    def of(device: Device | None) -> Placement:
        """The placement on a device, the default one for None; the errors are those of ``device_of``."""
        return Placement.default() if device is None else Placement.on(device_of(device), True)

    @staticmethod
    def on(device: JaxDevice, is_chosen: bool = False) -> Placement:
        """The placement on a device."""
        return Placement(device, device.platform, is_chosen)

    @cached_property
    def sharding(self) -> SingleDeviceSharding:
        """The sharding of the arrays that are here."""
        return SingleDeviceSharding(self.device)

    @property
    def options(self) -> dict[str, Any]:
        """The options of ``jax.jit`` for a function whose results are the outputs of an engine."""
        return {"out_shardings": self.sharding} if self.is_chosen else {}

    def settings(self) -> pinned_settings:
        """The context of what an engine compiles, loads and calls: with its device as JAX's default one."""
        is_default = default_device(jax.config) is None and self._is_first
        return pinned_settings(None if is_default else self.device)

    @cached_property
    def _is_first(self) -> bool:
        return self.device == jax.local_devices()[0]

    def is_elsewhere(self, array: Any) -> bool:
        """Whether something is an array of JAX on other devices, or in other memory of this one."""
        return isinstance(array, jax.Array) and array.sharding != self.sharding and not array.is_deleted()

    def moved(self, values: Mapping[K, Any]) -> Mapping[K, Any]:
        """The values of inputs, where arrays on other devices are moved here; those of numpy stay as they are.

        Raises:
            ExecutionError: the device has no memory for one.
        """
        arrays = (array for value in values.values() for array in (value if isinstance(value, Tensors) else (value,)))
        if not any(map(self.is_elsewhere, arrays)):
            return values
        with self.settings():
            return {key: self._moved(value) for key, value in values.items()}

    def _moved(self, value: Any) -> Any:
        if isinstance(value, Tensors):
            return Tensors(map(self._moved, value))
        return jax.device_put(value, self.sharding) if self.is_elsewhere(value) else value

    def copied(self, array: Any) -> jax.Array:
        """A copy of an array here; called within ``settings``."""
        place = self.sharding if self.is_chosen or self.is_elsewhere(array) else None
        return jax.device_put(array, place, may_alias=False)

    def committed(self, output: Any) -> Any:
        """An output that no function with ``options`` has computed: an array, or a list of them; others stay."""
        if not self.is_chosen:
            return output
        if isinstance(output, list):
            return [*map(self.committed, output)]
        return jax.device_put(output, self.sharding) if isinstance(output, jax.Array) else output


def default_on(device: Device) -> AbstractContextManager[Any]:
    """The context in which a device is JAX's default one; the errors are those of ``device_of``."""
    return jax.default_device(device_of(device))


def device_of(device: Device) -> JaxDevice:
    """A device that this process computes on, by itself or by its name.

    Raises:
        TypeError: it is neither a device nor a name.
        InputError: this process has no such device.
    """
    if isinstance(device, str):
        return _named(device)
    if not isinstance(device, jax.Device):
        raise TypeError(f"device must be a jax.Device or a name such as 'cpu' or 'cuda:1', not {type(device).__name__}")
    if device.process_index != jax.process_index():
        raise _unknown(str(device), f"it belongs to process {device.process_index} of a cluster")
    return device


def _named(name: str) -> JaxDevice:
    parts = NAME.fullmatch(name)
    devices = _devices_of(parts[1]) if parts else []
    number = int(parts[2] or 0) if parts else 0
    if number < len(devices):
        return devices[number]
    raise _unknown(name, f"JAX has {len(devices)} of this platform here" if devices else reason("NL656"))


def _devices_of(platform: str) -> list[JaxDevice]:
    """The devices of this process; none if JAX has no such platform."""
    try:
        return jax.local_devices(backend=platform)
    except RuntimeError:
        return []


def _unknown(name: str, why: str) -> InputError:
    platforms = dict.fromkeys([jax.default_backend(), "cpu"])
    names = [f"{platform}:{number}" for platform in platforms for number in range(len(_devices_of(platform)))]
    what = f"there is no device {name!r}; JAX has {listed(names)}"
    is_gpu = name.startswith(("cuda", "gpu")) and not _devices_of("cuda")
    fix = "install JAX for NVIDIA's GPUs: pip install 'netloop[cuda13]'" if is_gpu else did_you_mean(name, names)
    return InputError(Finding("NL656", what, why=why, fix=fix or "pass one of these"))
