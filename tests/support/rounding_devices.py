"""Devices that round the operands of float32 products, imitated on a CPU.

The imitation shares nothing with netloop's table of devices: operands lose bits here, in numpy and in matrix products
of engines, and what netloop says of the device is set beside it.
"""

from typing import Any

import numpy as np
import pytest
from jax import config, lax

import netloop as trt
from netloop.compiler.product_precision import DeviceTraits

BITS = {"tensorfloat32": 10, "bfloat16": 7}
"""The bits after the point of the types to which devices round."""
DEVICES = {"tensorfloat32": DeviceTraits("gpu", "9.0"), "bfloat16": DeviceTraits("tpu")}
"""A device that rounds to each type: an H100, and a TPU."""


def rounded(x: Any, bits: int) -> np.ndarray:
    """Float32 numbers rounded to some bits after the point, ties to even, as float64."""
    dropped = 23 - bits
    whole = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    whole += (1 << (dropped - 1)) - 1 + ((whole >> dropped) & 1)
    return (whole >> dropped << dropped).astype(np.uint32).view(np.float32).astype(np.float64)


def pretend(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let every device be one that rounds to the type of a name, in matrix products that allow it.

    A test needs the fixture ``default_precision`` too, as JAX may be set to products that are not rounded.
    """
    lower, bits = trt.IMatrixMultiplyLayer.lower, BITS[name]

    def rounding(layer: trt.IMatrixMultiplyLayer, *operands: Any) -> Any:
        is_exact = config.jax_default_matmul_precision == "highest" or operands[0].dtype != np.float32
        return lower(layer, *(x if is_exact else lax.reduce_precision(x, 8, bits) for x in operands))

    monkeypatch.setattr(trt.IMatrixMultiplyLayer, "lower", rounding)
    # machine code never rounds operands, and is for CPUs, which do not either
    monkeypatch.setattr("netloop.compiler.passes.product_kernels.processor", lambda: None)
    monkeypatch.setattr(DeviceTraits, "of", lambda device: DEVICES[name])
