"""When two arrays agree, and where they differ most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from netloop.compiler.product_precision import FLOAT32, ProductType
from netloop.compiler.recipe import Recipe
from netloop.model.graph import ILayer, ITensor
from netloop.model.layers.plugin import IPluginV3Layer
from netloop.model.network import INetworkDefinition
from netloop.values.types import Array, TensorType

Numbers = tuple[tuple[int, ...], Any, Any, int | None]
"""The largest difference of two arrays: the index, the two numbers, and their distance in ulps."""

MOST_RELATIVE, MOST_ABSOLUTE = 0.5, 0.25
"""The largest usual tolerances, which 8-bit types and shorter ones have: with larger ones 0 and 1 would agree."""
FLUSHED = -100
"""Types whose least normal number is less than 2 to this power lose smaller ones in XLA's programs for CPUs."""


@dataclass(frozen=True)
class Tolerance:
    """The tolerances of a comparison of floating-point numbers; integers, bools and strings have to be equal.

    Attributes:
        rtol: the relative tolerance; None for the square root of the epsilon.
        atol: the absolute tolerance, added to the relative one; None for the same, times the root mean square of the
            numbers that are expected of the tensor if that is less than 1. It is at least the number that a device may
            round to zero.
        products: the type of the operands of the float32 products that the numbers follow from. If a device rounds to
            it, its epsilon counts where that is larger, and the root mean square where that is more than 1.
    """

    rtol: float | None
    atol: float | None
    products: ProductType = FLOAT32

    def limits(self, *expected: Array) -> Limits:
        """The limits for the differences of a tensor, by the numbers expected of it, of which there may be several
        arrays of one type.
        """
        dtype = expected[0].dtype
        if not jnp.issubdtype(dtype, jnp.floating):
            return Limits(0.0, 0.0, 0.0)
        numbers = np.concatenate([array.astype(np.float64).reshape(-1) for array in expected])
        sizes = np.abs(numbers[np.isfinite(numbers)])
        is_rounded, epsilon = self.products.is_rounded, float(jnp.finfo(dtype).eps)
        usual = (max(epsilon, self.products.epsilon) if is_rounded else epsilon) ** 0.5
        largest = float(sizes.max(initial=0))
        # divided by the largest one, as squares of extreme numbers are infinite or zero
        mean = largest * float(np.mean((sizes / largest) ** 2)) ** 0.5 if largest else 0.0
        rtol = min(usual, MOST_RELATIVE) if self.rtol is None else self.rtol
        # a sum that nearly cancels has errors as large as those of others, which rounded operands make large
        size = mean if is_rounded else min(1.0, mean)
        atol = max(min(usual, MOST_ABSOLUTE) * size, _least(dtype)) if self.atol is None else self.atol
        return Limits(rtol, atol, largest)


@dataclass(frozen=True)
class Limits:
    """The limits for the differences of one tensor.

    Attributes:
        rtol: the relative tolerance.
        atol: the absolute tolerance, added to it.
        largest: the largest size of a finite number that is expected; 0 for types that are compared exactly.
    """

    rtol: float
    atol: float
    largest: float

    @property
    def hides_all(self) -> bool:
        """Whether the absolute tolerance is so large that zeros would agree too."""
        return 0 < self.largest <= self.atol

    def worst(self, expected: Array, got: Array) -> Numbers | None:
        """The largest difference of two arrays; None if they are equal within the limits."""
        if expected.shape != got.shape:
            return (), expected.shape, got.shape, None
        if not expected.size:
            return None
        with np.errstate(all="ignore"):
            excess = self.excess(expected, got)
        index = np.unravel_index(int(np.argmax(excess)), expected.shape)
        if not excess[index] > 0:
            return None
        return tuple(map(int, index)), expected[index], got[index], _ulps(expected[index], got[index])

    def excess(self, expected: Array, got: Array) -> Array:
        """The amount by which each number exceeds the limits."""
        if not jnp.issubdtype(expected.dtype, jnp.floating):
            return (expected != got).astype(np.float64)
        a, b = expected.astype(np.float64), got.astype(np.float64)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        excess = np.abs(a - b) - (self.atol + self.rtol * np.abs(a))
        # infinities and NaN differ infinitely, unless both numbers are the same
        return np.where(same, 0.0, np.where(np.isfinite(a) & np.isfinite(b), excess, np.inf))


class Tolerances:
    """The tolerances for the tensors of a network.

    Where a device rounds the operands of float32 products, tensors that follow from products have the usual tolerances
    of the type to which it rounds, as those of a network of half precision have: TensorFloat-32 has its epsilon.

    Args:
        rtol, atol: as of ``Tolerance``.
        network: the network.
        recipe: the recipe of the programs that compute it.

    Attributes:
        products: the type of the operands of its float32 products; float32 if it has none.
    """

    def __init__(self, rtol: float | None, atol: float | None, network: INetworkDefinition, recipe: Recipe) -> None:
        self._rtol, self._atol, products = rtol, atol, recipe.product_type
        self._rounded = follow_from_products(network) if products.is_rounded else set[ITensor]()
        self.products = products if self._rounded else FLOAT32

    def of(self, tensor: ITensor) -> Tolerance:
        """The tolerances for a tensor."""
        return Tolerance(self._rtol, self._atol, self.products if tensor in self._rounded else FLOAT32)


def note_on_products(products: str) -> str:
    """The line of a comparison about products of a type; empty for float32."""
    return "" if products == FLOAT32.name else f"float32 products are those of {products}, which tolerances allow for"


def follow_from_products(network: INetworkDefinition) -> set[ITensor]:
    """The tensors that are computed from float32 products and convolutions, or from plugins of JAX, which may have any.

    What a product decides only by a trip limit is not among them.
    """
    stack = [tensor for layer in network.layers if _multiplies(layer) for tensor in layer.outputs]
    result = set(stack)
    while stack:
        following = {tensor for user, _ in stack.pop().uses for tensor in user.outputs} - result
        result |= following
        stack += following
    return result


def _multiplies(layer: ILayer) -> bool:
    if isinstance(layer, IPluginV3Layer):
        return not layer.on_host
    types = (tensor.type for tensor in layer.inputs if tensor is not None)
    return layer.HAS_PRODUCTS and any(isinstance(type, TensorType) and type.dtype == np.float32 for type in types)


def _least(dtype: Any) -> float:
    """The size below which a device may round numbers to zero; 0 for types in which it rounds none."""
    info = jnp.finfo(dtype)
    return float(info.smallest_normal) if info.minexp < FLUSHED else 0.0


def _ulps(a: Any, b: Any) -> int | None:
    """The distance of two numbers of one floating-point type in ulps; None for other types, strings and NaN."""
    is_float = not isinstance(a, str) and jnp.issubdtype(a.dtype, jnp.floating)
    if not is_float or np.isnan(np.float64(a)) or np.isnan(np.float64(b)):
        return None
    return abs(_rank(a) - _rank(b))


def _rank(x: Any) -> int:
    """The index of ``x`` in the ordered floating-point numbers of its type; 0 for zero."""
    bits = int(np.asarray(x).view(f"u{x.dtype.itemsize}"))
    sign = 1 << (8 * x.dtype.itemsize - 1)
    return sign - bits if bits & sign else bits
