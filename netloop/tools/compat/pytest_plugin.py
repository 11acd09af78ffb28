"""A plugin of pytest for tests of TensorRT code: ``pytest -p netloop.compat.pytest_plugin``.

With it, the modules of tests and ``conftest.py`` files may import ``tensorrt`` and CUDA's packages. ``--tensorrt 8`` is
the version of TensorRT that the tests are written for. A suite that wants the stand-ins in single tests only writes
``pytest_plugins = ["netloop.compat.fixtures"]``, and uses the fixture ``tensorrt_without_gpu`` there.
"""

import pytest

from netloop.tools.compat import install
from netloop.tools.compat.versions import VERSIONS

NEWEST = max(VERSIONS)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of the version."""
    what = "the major version of TensorRT that netloop stands for"
    parser.addoption("--tensorrt", type=int, choices=VERSIONS, default=NEWEST, help=what)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Install the stand-ins before the first ``conftest.py`` is imported; plugins given by ``-p`` are asked."""
    install(early_config.known_args_namespace.tensorrt)


def pytest_configure(config: pytest.Config) -> None:
    """Install the stand-ins before any test is imported, where the plugin was loaded later."""
    install(config.getoption("--tensorrt", None) or NEWEST)
