"""A plugin of pytest for tests that run as on a machine with a GPU."""

import sys

import pytest

from tests.other_projects import faked_device

faked_device.install(pytest.MonkeyPatch())
for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
    del sys.modules[name]  # a suite may have a package of that name
