"""OpenVINO's plugin for CPUs as a peer."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import openvino

from netloop.formats.openvino import save
from netloop.model.network import INetworkDefinition
from netloop.tools.peers.base import Peer

EXACT = {"INFERENCE_PRECISION_HINT": "f32"}
"""The options of a compilation: some CPUs would compute in bfloat16."""


class OpenVinoPeer(Peer):
    """A compiled model."""

    name = "openvino"
    reads = (".xml", ".onnx")

    def _load(self, network: INetworkDefinition, file: Path) -> None:
        core = openvino.Core()
        model: Any = core.read_model(str(file))
        names = {tensor.name for tensor in network.inputs}
        # a parameter may have several names, of which netloop takes its own or one of the tensor's
        self._inputs = [
            next((n for n in (tensor.node.friendly_name, *tensor.names) if n in names), "") for tensor in model.inputs
        ]
        self._compiled: Any = core.compile_model(model, "CPU", EXACT)

    def _export(self, network: INetworkDefinition, file: Path) -> None:
        save(network, file, drop_assertions=True)  # which decide no output

    def _run(self, inputs: Mapping[str, Any]) -> list[Any]:
        # by an asynchronous request, because the synchronous one ignores errors
        request = self._compiled.create_infer_request()
        for name, port in zip(self._inputs, self._compiled.inputs, strict=True):
            # ascontiguousarray makes an axis for a number
            array = np.asarray(inputs[name])
            request.set_tensor(port, openvino.Tensor(np.ascontiguousarray(array).reshape(array.shape)))
        request.start_async()
        request.wait()
        return [_array(request.get_tensor(port)) for port in self._compiled.outputs]


def _array(tensor: Any) -> Any:
    # the memory belongs to the request
    return np.array(tensor.str_data) if tensor.element_type == openvino.Type.string else np.array(tensor.data)
