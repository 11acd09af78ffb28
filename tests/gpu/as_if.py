"""Tests on a CPU as if it were a GPU: netloop takes the passes and branches of a GPU. A plugin of pytest.

python -m pytest -p tests.gpu.as_if tests/compiler
"""

import jax

from tests.support import quick_programs


def pytest_configure() -> None:
    """Name another backend before test files are imported, whose marks look at it."""
    quick_programs.known_options()  # those of the real one
    jax.default_backend = lambda: "gpu"
