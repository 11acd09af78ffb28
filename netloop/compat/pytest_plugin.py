"""A plugin of pytest for tests of TensorRT code: ``pytest -p netloop.compat.pytest_plugin``."""

from netloop.tools.compat.pytest_plugin import pytest_addoption as pytest_addoption
from netloop.tools.compat.pytest_plugin import pytest_configure as pytest_configure
from netloop.tools.compat.pytest_plugin import pytest_load_initial_conftests as pytest_load_initial_conftests
