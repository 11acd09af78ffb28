"""The vectors of the processor at hand, and the types of numbers in them."""

import platform
import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

FLOAT32, BFLOAT16 = np.dtype(np.float32), np.dtype(jnp.bfloat16)
"""The types of weights; everything else is float32."""

MOST_THREADS = 8
"""The most threads that share a call."""


class Processor(NamedTuple):
    """The vectors of a processor.

    Attributes:
        lanes: the float32 of a vector.
        registers: the vectors of sums that its registers hold next to the operands.
    """

    lanes: int
    registers: int


PROCESSORS = {"avx512f": Processor(16, 24), "avx2": Processor(8, 12)}
"""The vectors by the feature that they need."""


@cache
def processor() -> Processor | None:
    """The vectors of this machine; None if there are no kernels for it, or the extra is not installed."""
    if sys.platform != "linux" or platform.machine() != "x86_64" or find_spec("llvmlite") is None:
        return None
    features = import_module("llvmlite.binding").get_host_cpu_features()
    return next((own for feature, own in PROCESSORS.items() if features.get(feature) and features.get("fma")), None)
