"""Tests on a CPU as if it were a GPU: netloop takes the passes and branches of a GPU. A plugin of pytest.

    python -m pytest -p tests.gpu.as_if tests/compiler
"""

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(autouse=True, scope="session")
def _default_backend_is_a_gpu() -> Iterator[None]:
    patched = pytest.MonkeyPatch()
    patched.setattr(jax, "default_backend", lambda: "gpu")
    yield
    patched.undo()


def pytest_configure() -> None:
    """Skip what is for CPUs: its marks look at the device when a file is imported."""
    jax.default_backend = lambda: "gpu"
