"""A plugin of pytest for Polygraphy's tests: of the installed package, and with a file for TensorRT's lean runtime.

The file is empty: the tests only look for it.
"""

import ctypes.util
import os
import tempfile
from pathlib import Path

import polygraphy as polygraphy  # before the tests, whose folder has another

NAME = "nvinfer_lean"
FOLDER = tempfile.TemporaryDirectory()


def pytest_configure() -> None:
    """Put the library where ``ctypes.util`` finds it."""
    path, find = Path(FOLDER.name, f"lib{NAME}.so"), ctypes.util.find_library
    path.touch()
    os.environ["LD_LIBRARY_PATH"] = os.pathsep.join([FOLDER.name, os.environ.get("LD_LIBRARY_PATH", "")])
    ctypes.util.find_library = lambda name: path.name if name == NAME else find(name)
