"""Networks as Python scripts that build them with TensorRT's API."""

from netloop.model.script import save as save
from netloop.model.script import to_script as to_script
