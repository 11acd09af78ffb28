"""TensorRT 9.3: the releases for language models, which have the names of version 8.6."""

__version__ = "9.3.0"
"""The release of TensorRT that the names match."""

NAMES = ()
"""The names of the module that are others than those of version 8."""
