"""TensorRT's ONNX refitter: replace the weights of an engine by the initializers of a model."""

import os

import numpy as np

from netloop.api.logger import ILogger
from netloop.api.onnx_parser import OnnxModelReader
from netloop.api.refitter import Refitter
from netloop.formats.onnx.importer.model import Model
from netloop.model.graph.attributes import check_instance
from netloop.model.layers.sources import IConstantLayer
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import Finding
from netloop.values.string_arrays import type_name
from netloop.values.types import Array


class OnnxParserRefitter(OnnxModelReader):
    """Pass the initializers of an ONNX model to a ``Refitter``, by name.

    The model has to be the one that the engine was built from, with other numbers. The engine uses the new weights
    after ``refitter.refit_cuda_engine()``. Small integers and other constants that are part of the engine's programs
    cannot be replaced: an initializer with other values for them is an error. If a method that takes weights returns
    False, its errors are in the list, and no weights were taken.
    """

    def __init__(self, refitter: Refitter, logger: ILogger) -> None:
        self._refitter = check_instance("refitter", refitter, Refitter)
        super().__init__(logger)

    def refit_from_bytes(self, model: bytes, path: str | None = None) -> bool:
        """Take the weights of a model from bytes; whether that succeeded. The arguments are those of ``parse``."""
        return self.load_model_proto(model, path) and self.refit_model_proto()

    def refit_from_file(self, model: str) -> bool:
        """Take the weights of a model from a file; whether that succeeded."""
        return self._read(os.fspath(model), None) and self.refit_model_proto()

    def refit_model_proto(self) -> bool:
        """Take the weights of the model that was read; whether that succeeded."""
        if self._loaded is None:
            return False
        network = INetworkDefinition()
        if self._add(self._loaded, network) is None:
            return False
        arrays = _initializers(network)
        findings = [each for name, array in arrays.items() if (each := self._misfit(name, array, self._loaded))]
        if findings:
            return self._refuse(findings, self._loaded.name)
        names = set(self._refitter.get_all_weights())
        return all(self._refitter.set_named_weights(name, array) for name, array in arrays.items() if name in names)

    def _misfit(self, name: str, array: Array, model: Model) -> Finding | None:
        """The reason why the engine cannot take an initializer, or None."""
        present = self._refitter.present(name)
        if present is None:
            return _refused(model, f"the engine has no weights {name!r}", "it was built from another model")
        if (present.dtype, present.size) != (array.dtype, array.size):
            what = f"the initializer {name!r} has {array.size} elements of {type_name(array.dtype)}"
            return _refused(model, what, f"the engine's weights have {present.size} of {type_name(present.dtype)}")
        if name in self._refitter.get_all_weights() or np.array_equal(present.ravel(), array.ravel(), equal_nan=True):
            return None
        why = "it is part of the programs of the engine, or was not marked as refittable"
        return _refused(model, f"the initializer {name!r} has other values, and cannot be replaced", why)


def _initializers(network: INetworkDefinition) -> dict[str, Array]:
    """The arrays of the initializers that became constants of a network, by name."""
    constants = (layer for layer in network.layers if isinstance(layer, IConstantLayer))
    return {
        constant.name: constant.weights
        for constant in constants
        if constant.metadata == f"[ONNX Initializer: {constant.name}]"
    }


def _refused(model: Model, what: str, why: str) -> Finding:
    return Finding("NL748", what, model.name, why, "build an engine from this model")
