"""A fixture of pytest: ``pytest_plugins = ["netloop.compat.fixtures"]``.

It has no assertions to rewrite, so that it may be imported before pytest knows of it: PYTEST_DONT_REWRITE.
"""

from netloop.tools.compat.fixtures import tensorrt_without_gpu as tensorrt_without_gpu
