"""Networks as Python scripts that build them with TensorRT's API."""

from netloop.model.script import save, to_script

__all__ = ["save", "to_script"]
