"""A plugin of pytest for tests of TensorRT code: ``pytest -p netloop.compat.pytest_plugin``.

With it, the modules of tests may import ``tensorrt`` and CUDA's packages. A suite that wants them in single tests only
writes ``pytest_plugins = ["netloop.compat.fixtures"]``, and uses the fixture ``tensorrt_without_gpu`` there.
"""

from netloop.tools.compat import install


def pytest_configure() -> None:
    """Install the stand-ins before any test is imported."""
    install()
