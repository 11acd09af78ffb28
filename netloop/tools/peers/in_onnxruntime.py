"""onnxruntime as a peer, on the CPU."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from netloop.formats.onnx import save
from netloop.model.network import INetworkDefinition
from netloop.tools.peers.base import Peer
from netloop.values.string_arrays import STRING

FATAL = 4
"""The severity from which on onnxruntime logs: what fails is raised too."""


class OnnxRuntimePeer(Peer):
    """A session."""

    name = "onnxruntime"
    reads = (".onnx",)

    def _load(self, network: INetworkDefinition, file: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = FATAL
        self._session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        self._taken = {input_.name for input_ in self._session.get_inputs()}

    def _export(self, network: INetworkDefinition, file: Path) -> None:
        save(network, file, drop_assertions=True)  # which decide no output

    def _run(self, inputs: Mapping[str, Any]) -> list[Any]:
        # its optimizer drops inputs that no output needs
        taken = {name: _plain(value) for name, value in inputs.items() if name in self._taken}
        return list(self._session.run(self._outputs, taken))


def _plain(value: Any) -> Any:
    """A value as onnxruntime takes it: strings are objects."""
    if value is None or isinstance(value, list | dict):
        return value
    array = np.asarray(value)
    return array.astype(object) if array.dtype == STRING or array.dtype.kind == "U" else array
