"""A runner of Polygraphy that runs ONNX models with netloop."""

import time
from typing import Any

import numpy as np
from polygraphy import util
from polygraphy.backend.base import BaseRunner
from polygraphy.common import TensorMetadata
from polygraphy.datatype import DataType

import netloop
from netloop.values.types import UNKNOWN, nptype


class NetloopRunner(BaseRunner):
    """Runs an ONNX model.

    Args:
        model: the model, or a loader that returns it.
        name: the name of the runner in Polygraphy's messages.
    """

    def __init__(self, model: Any, name: str | None = None) -> None:
        super().__init__(name=name, prefix="netloop-runner")
        self._model = model

    @util.check_called_by("activate")
    def activate_impl(self) -> None:
        """Load and compile the model."""
        model: Any = util.invoke_if_callable(self._model)[0]
        self.engine = netloop.compile(netloop.onnx.load(model))

    @util.check_called_by("get_input_metadata")
    def get_input_metadata_impl(self) -> TensorMetadata:
        """The names, element types and shapes of the inputs; None for an open length."""
        metadata = TensorMetadata()
        for tensor in self.engine.network.inputs:
            shape = [None if length == UNKNOWN else length for length in tensor.shape]
            metadata.add(tensor.name, DataType.from_dtype(np.dtype(nptype(tensor.dtype)), "numpy"), shape)
        return metadata

    @util.check_called_by("infer")
    def infer_impl(self, feed_dict: dict[str, Any]) -> dict[str, Any]:
        """Run the model."""
        began = time.perf_counter()
        outputs = {name: np.asarray(value) for name, value in self.engine(feed_dict).items()}
        self.inference_time = time.perf_counter() - began
        return outputs

    @util.check_called_by("deactivate")
    def deactivate_impl(self) -> None:
        """Drop the engine."""
        del self.engine
