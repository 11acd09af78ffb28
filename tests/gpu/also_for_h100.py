"""Tests whose engines compile each program for an H100 too, and fail where XLA refuses it. A plugin of pytest.

JAX_SKIP_CUDA_CONSTRAINTS_CHECK=1 JAX_PLATFORMS=cpu python -m pytest -p tests.gpu.also_for_h100 tests/compiler
"""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _also_for_the_card() -> Iterator[None]:
    from benchmarks import h100  # importing JAX before the settings of tests are read would be too early

    with h100.programs_are_compiled_for_it():
        yield
