"""New weights for an engine from an ONNX model, as TensorRT's parser takes them."""

from __future__ import annotations

import os

import numpy as np

from netloop.api.logger import ILogger
from netloop.api.onnx_parser import ReadsModels
from netloop.api.refitter import Refitter
from netloop.diagnostics import Finding
from netloop.graph.layer import check_instance
from netloop.layers.sources import IConstantLayer
from netloop.network import INetworkDefinition
from netloop.onnx.importer.model import Model
from netloop.types import Array


class OnnxParserRefitter(ReadsModels):
    """Gives a ``Refitter`` the initializers of an ONNX model, by their names.

    The model is the one that the engine was made of, with other numbers. Its initializers become new weights, which the
    engine has after ``refitter.refit_cuda_engine()``. What is part of the engine's programs and no weights, as small
    integers are, stays as it was: an initializer that says otherwise is an error.
    """

    def __init__(self, refitter: Refitter, logger: ILogger) -> None:
        self._refitter = check_instance("refitter", refitter, Refitter)
        super().__init__(logger)

    def refit_from_bytes(self, model: bytes, path: str | None = None) -> bool:
        """Take the weights of the model in some bytes; False if something is wrong with it, and nothing is taken.

        Args:
            model: the bytes of a file.
            path: the path of that file, beside which are the files that hold its tensors.
        """
        return self.load_model_proto(model, path) and self.refit_model_proto()

    def refit_from_file(self, model: str) -> bool:
        """Take the weights of the model in a file; False if something is wrong with it, and nothing is taken."""
        return self._take(os.fspath(model), None) and self.refit_model_proto()

    def refit_model_proto(self) -> bool:
        """Take the weights of the model that was read; False if something is wrong with it, and nothing is taken."""
        if self._loaded is None:
            return False
        network = INetworkDefinition()
        if self._add(self._loaded, network) is None:
            return False
        given = _initializers(network)
        findings = [each for name, array in given.items() if (each := self._misfit(name, array, self._loaded))]
        if findings:
            return self._refuse(findings, self._loaded.name)
        names = set(self._refitter.get_all_weights())
        return all(self._refitter.set_named_weights(name, array) for name, array in given.items() if name in names)

    def _misfit(self, name: str, array: Array, model: Model) -> Finding | None:
        """Why the engine cannot take an initializer."""
        present = self._refitter.present(name)
        if present is None:
            return _refused(model, f"the engine has nothing that is called {name!r}", "it was made of another model")
        if (present.dtype, present.size) != (array.dtype, array.size):
            what = f"the initializer {name!r} is {array.size} of {array.dtype}"
            return _refused(model, what, f"that of the engine is {present.size} of {present.dtype}")
        if name in self._refitter.get_all_weights() or np.array_equal(present.ravel(), array.ravel(), equal_nan=True):
            return None
        why = "it is part of the programs of the engine, or was not marked as refittable"
        return _refused(model, f"the initializer {name!r} is another, and cannot be replaced", why)


def _initializers(network: INetworkDefinition) -> dict[str, Array]:
    """The arrays of the initializers that became constants of a network, by name."""
    constants = (each for each in network.layers if isinstance(each, IConstantLayer))
    return {each.name: each.weights for each in constants if each.metadata == f"[ONNX Initializer: {each.name}]"}


def _refused(model: Model, what: str, why: str) -> Finding:
    return Finding("NL748", what, model.name, why, "build an engine of this model")
