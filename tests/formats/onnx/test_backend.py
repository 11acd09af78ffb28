"""ONNX's own tests of operators and small models."""

import warnings
from importlib.util import find_spec
from pathlib import Path

from tests.support.onnx_backend import Comparing, QuickBackend

EXCLUDED = [
    line.split(maxsplit=1)
    for line in (Path(__file__).parent / "exclusions.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
"""Tests that do not pass yet, each with the reason."""

ROUGH = {name: {"atol": 1e-6} for name in ("test_dft_inverse", "test_dft_inverse_opset19")}
"""Tests whose expected output is computed in float32 by numpy, with their tolerances."""


def cases():
    """The tests by category, without those for other devices and of large models."""
    with warnings.catch_warnings():
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
    return found


globals().update(cases())
