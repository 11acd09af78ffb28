"""The tensors of PyTorch that a script has put on the device ``cuda``, and their answers about where they are.

Their memory is that of the host, like that of all others. Storages are marked, so that views and parameters follow
their tensors. Only the thread of the mode knows of it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

PRUNED_AT = 1 << 12
"""The number of marked storages at which those that are gone are forgotten."""

PACKING = ("_pack_padded_sequence", "_pad_packed_sequence")
"""The functions whose second result, of lengths, is always on the host."""

BEFORE_OTHERS = 5
"""The place among the functions with which PyTorch saves and loads storages; that of its own for ``cpu`` is 10."""


class DeviceTensors:
    """The tensors on the device: those asked for there, and the results of functions that read them."""

    def __init__(self, torch: Any) -> None:
        tensor = torch.Tensor
        self._torch, self._cpu = torch, tensor.cpu
        self._weak = importlib.import_module("torch.multiprocessing.reductions").StorageWeakRef
        self._storages: dict[int, Any] = {}
        self._device = torch.device("cuda", 0)
        self._answers = {tensor.device.__get__: self._device, tensor.is_cuda.__get__: True, tensor.get_device: 0}
        torch.serialization.register_package(BEFORE_OTHERS, self._location, self._restored)

    def answer(self, function: Any, args: Sequence[Any]) -> Any:
        """The result of a function that asks where a tensor is; None for another, and for tensors of the host."""
        return self._answers.get(function) if args and args[0] in self else None

    def __contains__(self, value: Any) -> bool:
        return self._key(value) in self._storages

    def place(self, function: Any, args: Sequence[Any], named: Mapping[str, Any], result: Any) -> Any:
        """The result of a function, which is on the device if it was asked for there, or if an argument is.

        A tensor that moves is copied, as on a machine with a GPU.
        """
        values = [*args, *named.values()]
        devices = [name for value in values if (name := self._device_of(value))] + ["cpu"] * (function == self._cpu)
        keys = {key for value in _flat(values) if (key := self._key(value)) is not None}
        is_here = devices[-1] == "cuda" if devices else any(key in self._storages for key in keys)
        if devices and self._key(result) in keys and (result in self) != is_here:
            result = result.clone()
        if is_here:
            moved = result[:1] if getattr(function, "__name__", "") in PACKING else [result]
            self._mark(value for value in _flat(moved) if devices or self._key(value) not in keys)
        return result

    def _device_of(self, value: Any) -> str:
        name = str(value).partition(":")[0] if isinstance(value, self._torch.device | str) else ""
        return name if name in ("cpu", "cuda") else ""

    def _key(self, value: Any) -> int | None:
        try:
            return value.untyped_storage()._cdata if isinstance(value, self._torch.Tensor) else None
        except (NotImplementedError, RuntimeError):  # a tensor without a storage, as sparse ones
            return None

    def _mark(self, values: Iterator[Any]) -> None:
        for value in values:
            if self._key(value) is not None:
                self._mark_storage(value.untyped_storage())

    def _mark_storage(self, storage: Any) -> None:
        self._storages[storage._cdata] = self._weak(storage)  # which keeps the number from being used anew
        if len(self._storages) > PRUNED_AT:
            self._storages = {key: weak for key, weak in self._storages.items() if not weak.expired()}

    def _location(self, storage: Any) -> str | None:
        """The device that is saved with a storage."""
        return str(self._device) if storage._cdata in self._storages else None

    def _restored(self, storage: Any, location: str) -> Any:
        """A storage that was saved from a device, or is loaded to it; None for one of the host."""
        if location.partition(":")[0] != "cuda":
            return None
        self._mark_storage(storage)
        return storage


def _flat(values: Sequence[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, tuple | list):
            yield from _flat(value)
        else:
            yield value
