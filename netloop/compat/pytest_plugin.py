"""A plugin of pytest for tests of TensorRT code: ``pytest -p netloop.compat.pytest_plugin``."""

from netloop.tools.compat.pytest_plugin import pytest_configure as pytest_configure
