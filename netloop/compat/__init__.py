"""TensorRT code without a GPU: netloop instead of ``tensorrt``, and CUDA's Python packages on host memory.

python -m netloop.compat script.py               # a script, unchanged
python -m netloop.compat --tensorrt 8 script.py  # one that was written for TensorRT 8
pytest -p netloop.compat.pytest_plugin           # tests of TensorRT code
"""

from netloop.tools.compat import install, stand_ins

__all__ = ["install", "stand_ins"]
