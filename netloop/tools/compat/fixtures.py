"""A fixture of pytest: ``pytest_plugins = ["netloop.compat.fixtures"]``."""

import importlib
from collections.abc import Generator
from typing import Any

import pytest

from netloop.tools.compat import stand_ins


@pytest.fixture
def tensorrt_without_gpu() -> Generator[Any]:
    """The module ``tensorrt``, which netloop stands for during the test; CUDA's packages are on host memory."""
    with stand_ins():
        yield importlib.import_module("tensorrt")
