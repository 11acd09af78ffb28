"""A runtime of MLServer for onnxruntime, with which ``benchmarks.serving`` compares netloop's."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

MLSERVER: Any = import_module("mlserver")
CODECS: Any = import_module("mlserver.codecs")
TYPES: Any = import_module("mlserver.types")
UTILS: Any = import_module("mlserver.utils")
ONNXRUNTIME: Any = import_module("onnxruntime")


class OnnxRuntime(MLSERVER.MLModel):
    """An ONNX model, one call for each request; ``extra.states`` are kept by ``sequence_id`` in a dict."""

    async def load(self) -> bool:
        """Load the model."""
        self._session = ONNXRUNTIME.InferenceSession(await UTILS.get_model_uri(self.settings))
        self._states: dict[str, str] = (self.settings.parameters.extra or {}).get("states", {})
        self._shapes = {input_.name: input_.shape for input_ in self._session.get_inputs()}
        self._kept: dict[Any, dict[str, Any]] = {}
        self._outputs = [output.name for output in self._session.get_outputs()]
        return True

    async def predict(self, payload: Any) -> Any:
        """Answer a request."""
        arrays = {tensor.name: CODECS.NumpyCodec.decode_input(tensor) for tensor in payload.inputs}
        if self._states:
            arrays |= self._before(payload.parameters)
        made = dict(zip(self._outputs, self._session.run(None, arrays), strict=True))
        if self._states:
            self._kept[payload.parameters.sequence_id] = {name: made.pop(new) for name, new in self._states.items()}
        outputs = [CODECS.NumpyCodec.encode_output(name, value) for name, value in made.items()]
        return TYPES.InferenceResponse(id=payload.id, model_name=self.name, outputs=outputs)

    def _before(self, parameters: Any) -> dict[str, Any]:
        if getattr(parameters, "sequence_start", False):
            return {name: np.zeros(self._shapes[name], np.float32) for name in self._states}
        return self._kept[parameters.sequence_id]
