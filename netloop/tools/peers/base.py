"""The common base of all peers: functions from inputs to outputs."""

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from netloop.model.call_inputs import array_named
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import ExecutionError, Finding, NetloopError, reason
from netloop.values.foreign_arrays import CUDA_ARRAY, DLPACK

LONGEST = 500
"""The most characters of another runtime's message."""


class Peer(ABC):
    """Another runtime with a network loaded.

    Args:
        network: the network.
        model: the file that the network was loaded from, or None.

    Attributes:
        name: the name of the runtime.
    """

    name: ClassVar[str]
    reads: ClassVar[tuple[str, ...]] = ()
    """The suffixes of the files that the runtime reads; the first is what netloop exports for it."""

    def __init__(self, network: INetworkDefinition, model: Path | None = None) -> None:
        self._outputs = [tensor.name for tensor in network.outputs]
        with self._failures("refuses the model"):
            if model is not None and model.suffix.lower() in self.reads:
                self._load(network, model)
            elif self.reads:
                # the runtimes read files of more than 2 GB from paths only
                with tempfile.TemporaryDirectory(prefix="netloop-") as folder:
                    file = Path(folder) / f"model{self.reads[0]}"
                    self._export(network, file)
                    self._load(network, file)
            else:
                self._load(network, Path())

    def __call__(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs for some inputs, by name: arrays as an engine takes them, also those on devices.

        Raises:
            InputError: an array of another library cannot be read here.
            ExecutionError: the runtime fails.
        """
        with self._failures("fails"):
            values = {name: _on_host(name, value) for name, value in inputs.items()}
            return dict(zip(self._outputs, self._run(values), strict=True))

    @abstractmethod
    def _load(self, network: INetworkDefinition, file: Path) -> None:
        """Load a file."""

    def _export(self, network: INetworkDefinition, file: Path) -> None:
        """Write a network in the format of the runtime."""
        raise NotImplementedError

    @abstractmethod
    def _run(self, inputs: Mapping[str, Any]) -> list[Any]:
        """The outputs, in the order of the network's."""

    @contextmanager
    def _failures(self, what: str) -> Generator[None]:
        try:
            yield
        except (NetloopError, KeyboardInterrupt, MemoryError, ModuleNotFoundError):
            raise
        except Exception as error:  # runtimes raise RuntimeError and kinds of their own
            message = " ".join(str(error).split())
            shown = message if len(message) <= LONGEST else message[:LONGEST] + " ..."
            finding = Finding("NL613", f"{self.name} {what}: {shown}", why=reason("NL613"))
            raise ExecutionError(finding) from error


def _on_host(name: str, value: Any) -> Any:
    """The value of an input with arrays of numpy; what is no array stays as it is."""
    if isinstance(value, list | tuple):
        parts: list[Any] = [*value]  # pyright: ignore[reportUnknownArgumentType]
        return [_on_host(name, part) for part in parts]
    is_foreign = any(hasattr(type(value), protocol) for protocol in (DLPACK, CUDA_ARRAY))
    return np.asarray(array_named(name, value)) if is_foreign and not isinstance(value, np.ndarray) else value
