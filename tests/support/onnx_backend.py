"""netloop as a backend of ONNX's own tests."""

from functools import partial

import numpy as np
from onnx.backend.base import Backend, BackendRep
from onnx.backend.test import BackendTest

import netloop


class Prepared(BackendRep):
    """A model ready to run, as an engine or by the reference."""

    def __init__(self, model, by_reference=False):
        network = netloop.onnx.load(model)
        self.names = [tensor.name for tensor in network.inputs]
        self.engine = partial(netloop.evaluate, network) if by_reference else netloop.compile(network)

    def run(self, inputs, **options):
        outputs = self.engine({name: _array(tensor) for name, tensor in zip(self.names, inputs, strict=True)})
        return [_array(array) for array in outputs.values()]


def _array(value):
    """A value in numpy; sequences stay lists, and absent values None."""
    if isinstance(value, list):
        return [np.asarray(element) for element in value]
    return None if value is None else np.asarray(value)


class NetloopBackend(Backend):
    """Loads and compiles models."""

    @classmethod
    def supports_device(cls, device):
        return device == "CPU"

    @classmethod
    def is_by_reference(cls, model):
        """Whether the reference runs a model."""
        return False

    @classmethod
    def prepare(cls, model, device="CPU", **options):
        return Prepared(model, cls.is_by_reference(model))


class QuickBackend(NetloopBackend):
    """The same, except that expanded functions are not compiled: other tests compile the operators of their bodies.

    Attributes:
        evaluated: the names of other models that the reference runs.
    """

    evaluated = frozenset()

    @classmethod
    def is_by_reference(cls, model):
        """Whether the model is an expanded function, or one of those that are evaluated."""
        return "_expanded" in model.graph.name or model.graph.name in cls.evaluated


class Comparing(BackendTest):
    """Compare sequences tensor by tensor; return their number. The package cannot if one is a number."""

    @classmethod
    def assert_similar_outputs(cls, ref_outputs, outputs, rtol, atol, model_dir=None):
        assert len(outputs) == len(ref_outputs)
        for got, wanted in zip(outputs, ref_outputs, strict=True):
            assert isinstance(got, list) == isinstance(wanted, list)
            pair = (wanted, got) if isinstance(wanted, list) else ([wanted], [got])
            assert len(pair[0]) == len(pair[1])
            super().assert_similar_outputs(*pair, rtol, atol, model_dir)
