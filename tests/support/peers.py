"""Other systems to compare with, None where they are not installed."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

torch: Any = import_module("torch") if find_spec("torch") else None
openvino: Any = import_module("openvino") if find_spec("openvino") else None
needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
