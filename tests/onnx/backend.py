"""netloop as a backend of ONNX's own tests."""

from pathlib import Path
from unittest import SkipTest

import numpy as np
from onnx.backend.base import Backend, BackendRep

import netloop
from netloop import ModelError

HERE = Path(__file__).parent
MISSING_OPERATORS = set((HERE / "missing_operators.txt").read_text(encoding="utf-8").split())
"""The operators that are not there yet, ``Mod-13`` or ``ai.onnx.ml::LabelEncoder-4``."""
LATER = {"NL744": "an operator", "NL746": "an element type"}


class Prepared(BackendRep):
    """A model as an engine."""

    def __init__(self, model):
        network = netloop.onnx.load(model)
        self.names = [each.name for each in network.inputs]
        self.engine = netloop.compile(network)

    def run(self, inputs, **options):
        outputs = self.engine({name: np.asarray(each) for name, each in zip(self.names, inputs, strict=True)})
        return [np.asarray(each) for each in outputs.values()]


class NetloopBackend(Backend):
    """Loads models, and skips those that need an operator or element type that is not there yet."""

    @classmethod
    def supports_device(cls, device):
        return device == "CPU"

    @classmethod
    def prepare(cls, model, device="CPU", **options):
        try:
            return Prepared(model)
        except ModelError as error:
            later = [each for each in error.findings if is_later(each)]
            if later:
                raise SkipTest(later[0].what) from error
            raise


def is_later(finding):
    """Whether a finding tells of an operator in the list of those that are missing, or of an element type."""
    operator = finding.what.removeprefix("netloop has no operator ")
    return finding.code == "NL746" or (finding.code == "NL744" and operator in MISSING_OPERATORS)
