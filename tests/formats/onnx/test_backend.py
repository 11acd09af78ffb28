"""ONNX's own tests of operators and small models."""

import warnings
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from onnx.backend.test.case.base import _Exporter

from tests.support.examples import IS_NIGHTLY
from tests.support.onnx_backend import Comparing, QuickBackend

EXCLUDED = [
    line.split(maxsplit=1)
    for line in (Path(__file__).parent / "exclusions.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
"""Tests that do not pass yet, each with the reason."""

ROUGH = {name: {"atol": 1e-6} for name in ("test_dft_inverse", "test_dft_inverse_opset19")}
"""Tests whose expected output is computed in float32 by numpy, with their tolerances."""

MANY, ONE_OF = 2, 20
"""Of so many models of an operator, or more, the first and one of a few are compiled; in the slow tests, all are."""

LARGE = {f"export_{operator}_3d_default" for operator in ("averagepool", "lppool", "maxpool")}
"""Functions of ONNX that compute data of volumes of 32 x 32 x 32 element by element, for seconds, in each process that
collects tests; those of small volumes have the same attributes. The nightly profile has them."""


def make_data(cls, name, bases, functions):
    """Make the models of a class of ONNX as ONNX does, but without large ones and the text of its documentation."""
    for key in functions:
        if key.startswith("export") and (IS_NIGHTLY or key not in LARGE):
            np.random.seed(0)  # the data are those that ONNX publishes
            getattr(cls, key)()


def evaluated(names):
    """The names of the models that only the slow tests compile: of each operator in their order."""
    families = defaultdict(list)
    for name in sorted(names):
        families[name.split("_")[1]].append(name)
    large = [family for family in families.values() if len(family) >= MANY]
    return frozenset(name for family in large for place, name in enumerate(family) if place % ONE_OF)


def compiled(test):
    """The same test with an engine."""

    @pytest.mark.slow
    def run(self):
        with patch.object(QuickBackend, "evaluated", frozenset()):
            test(self)

    return run


def cases():
    """The tests by category, without those for other devices and of large models."""
    with warnings.catch_warnings(), patch.object(_Exporter, "__init__", make_data):
        warnings.simplefilter("ignore")  # numpy's, while the package makes its data
        runner = Comparing(QuickBackend, __name__, ROUGH)
    for name, _ in EXCLUDED:
        runner.exclude(f"^{name}_cpu$")
    if find_spec("PIL") is None:
        runner.exclude("image_decoder")
    found = runner.test_cases
    del found["OnnxBackendRealModelTest"]
    for case in found.values():
        for name in [name for name in dir(case) if name.endswith("_cuda")]:
            delattr(case, name)
    operators = found["OnnxBackendNodeModelTest"]
    tests = {name.removesuffix("_cpu"): test for name, test in vars(operators).items() if name.endswith("_cpu")}
    QuickBackend.evaluated = evaluated(name for name in tests if "_expanded" not in name)
    # functions that are written as other operators, which have models of their own
    for name in [name for name in tests if "_expanded" in name]:
        setattr(operators, f"{name}_cpu", pytest.mark.slow(tests[name]))
    for name in QuickBackend.evaluated:
        setattr(operators, f"{name}_compiled", compiled(tests[name]))
    return found


globals().update(cases())
