"""A fixture of pytest: ``pytest_plugins = ["netloop.compat.fixtures"]``."""

from netloop.tools.compat.fixtures import tensorrt_without_gpu as tensorrt_without_gpu
