"""The precision of float32 products and convolutions: how programs ask for it, and what devices make of it.

JAX asks for the precision of ``jax_default_matmul_precision`` where a product names none, as those of netloop do. By
default that is the fast one of the device: GPUs round the operands to TensorFloat-32, TPUs to bfloat16.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import jax

HIGHEST = "highest"
"""The precision with which float32 products are those of float32 on every device."""

CALLERS = ""
"""The precision that JAX is set to while it traces, as pure functions have it."""

OF_TPU, OF_GPU = (None, "default", "bfloat16"), (None, "default", "bfloat16", "high", "tensorfloat32")
"""The precisions with which TPUs and GPUs round; with others they add up products of parts, or of whole numbers."""

FIRST_WITH_TF32 = 8.0
"""The compute capability from which NVIDIA's devices have TensorFloat-32: Ampere."""


class ProductType(NamedTuple):
    """The type of the operands that a device multiplies for float32 products and convolutions; sums are of float32.

    Attributes:
        name: its name.
        epsilon: the distance from 1 to the next larger number.
    """

    name: str
    epsilon: float

    @property
    def is_rounded(self) -> bool:
        """Whether operands of float32 are rounded."""
        return self != FLOAT32


FLOAT32 = ProductType("float32", 2.0**-23)
TENSORFLOAT32 = ProductType("tensorfloat32", 2.0**-10)
BFLOAT16 = ProductType("bfloat16", 2.0**-7)

ALGORITHMS = {
    "BF16_BF16_BF16": BFLOAT16,
    "BF16_BF16_F32": BFLOAT16,
    "TF32_TF32_F32": TENSORFLOAT32,
    "F16_F16_F16": ProductType("float16", 2.0**-10),
    "F16_F16_F32": ProductType("float16", 2.0**-10),
}
"""The algorithms of ``jax.lax.DotAlgorithmPreset`` that round float32, which name the type themselves."""


class DeviceTraits(NamedTuple):
    """The traits of a device that decide how it multiplies.

    Attributes:
        platform: the name of its platform in JAX.
        capability: the compute capability of NVIDIA's devices, such as ``"9.0"``; empty for others.
    """

    platform: str
    capability: str = ""

    @staticmethod
    def of(device: Any) -> DeviceTraits:
        """The traits of one of JAX's devices."""
        return DeviceTraits(device.platform, str(getattr(device, "compute_capability", "")))

    @property
    def has_tf32(self) -> bool:
        """Whether it has TensorFloat-32."""
        major, _, minor = self.capability.partition(".")
        is_of_nvidia = major.isdecimal() and minor.isdecimal()  # AMD's are such as gfx942
        return self.platform in ("gpu", "cuda") and is_of_nvidia and float(self.capability) >= FIRST_WITH_TF32


def product_type(precision: str | None, device: DeviceTraits) -> ProductType:
    """The type of the operands of float32 products on a device.

    Args:
        precision: a value of ``jax_default_matmul_precision``, or ``CALLERS``.
        device: the device.
    """
    precision = _set_now() if precision == CALLERS else precision
    if precision in ALGORITHMS:
        return ALGORITHMS[precision]
    if device.platform == "tpu" and precision in OF_TPU:
        return BFLOAT16
    return TENSORFLOAT32 if device.has_tf32 and precision in OF_GPU else FLOAT32


def precision_of(tf32: bool) -> str | None:
    """The precision of an engine that is made now: what JAX is set to, unless ``tf32`` forbids that."""
    return _set_now() if tf32 else HIGHEST


def _set_now() -> str | None:
    return jax.config.jax_default_matmul_precision  # pyright: ignore[reportAttributeAccessIssue]


def without_algorithm(is_wide: bool) -> AbstractContextManager[Any]:
    """A context in which JAX traces products of types that an algorithm of ``jax.lax.DotAlgorithmPreset`` is not for.

    JAX would convert integers and float64 to the type of the algorithm that it is set to.

    Args:
        is_wide: whether the products are of such a type.
    """
    algorithm = is_wide and (_set_now() or "").isupper()
    return with_precision(HIGHEST) if algorithm else nullcontext()


def with_precision(precision: str | None) -> AbstractContextManager[Any]:
    """A context in which JAX traces products that name no precision with this one."""
    if precision in (CALLERS, _set_now()):
        return nullcontext()
    return jax.default_matmul_precision(precision)  # pyright: ignore[reportArgumentType]
