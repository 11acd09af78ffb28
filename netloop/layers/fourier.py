"""The discrete Fourier transform."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from netloop.diagnostics import require
from netloop.enums import LayerType
from netloop.graph.adding import AddsLayers
from netloop.graph.layer import Operation, check_tensor, layer
from netloop.graph.tensor import ITensor
from netloop.types import UNKNOWN, Array, TensorType, normal_axis, wide

# fmt: off
FAST: dict[tuple[bool, bool], Callable[..., Any]] = {
    (False, False): jnp.fft.fft,
    (False, True):  jnp.fft.rfft,
    (True,  False): jnp.fft.ifft,
    (True,  True):  jnp.fft.irfft,
}
# fmt: on
"""JAX's transforms, by whether they are inverse, and whether one half stands for all."""


@layer(LayerType.DFT, "DFT")
class IDFTLayer(Operation):
    """The discrete Fourier transform along an axis, or its inverse.

    ::

        output[k] = sum over j < n of input[j] e^(-2 pi i j k / n)
        inverse:    sum over j < n of input[j] e^( 2 pi i j k / n) / n

    Numbers are complex: the last axis has real part and imaginary part, or the real part alone. n is input 1, int32 or
    int64, 0-D; it is by default the length of the axis, of which n elements count, zeros added where it has fewer.
    Output as the input, n elements along the axis, and real and imaginary part along the last. Floating-point, half
    types in float32.

    With ``onesided`` only elements 0 to n / 2, rounded down, are there; of a transform of real numbers the others are
    their conjugates, backwards. So the input of the transform is real, and that of the inverse is those elements, n
    being by default twice the length of the axis less 2; its output is real, with one element along the last axis.

    The layer is netloop's own, and means what ONNX's operator DFT does; TensorRT has none.

    Attributes:
        axis: the axis, any but the last; negative from the end. Input 2, int32 or int64, 0-D, takes its place.
        inverse: whether it is the inverse.
        onesided: whether one half stands for all.
    """

    MAX_INPUTS = 3
    SHAPE_INPUTS = frozenset({1, 2})
    INPUT_OF = {"axis": 2}

    axis: int = -2
    inverse: bool = False
    onesided: bool = False

    def infer(self, x: TensorType, length: TensorType | None = None, axis: TensorType | None = None) -> TensorType:
        require(x.is_float, f"the input is floating-point, not {x}", fix="convert it with add_cast")
        require(x.rank >= 2, f"the input is {x}, and has an axis to transform and then that of the parts")
        for name, each in (("length", length), ("axis", axis)):
            takes = each is None or (each.rank == 0 and each.is_index)
            require(takes, f"the {name} is an int32 or int64 scalar, not {each}")
        parts = (1, 2) if not self.onesided else (2,) if self.inverse else (1,)
        require(
            x.shape[-1] in (*parts, UNKNOWN),
            f"the last axis of {x} has {x.shape[-1]} elements, but must have {' or '.join(map(str, parts))}",
            why="they are the real and the imaginary part; one half stands for all only if the other side is real",
        )
        last = 1 if self.onesided and self.inverse else 2
        if axis is not None and axis.value is None:
            return x.with_shape((*[UNKNOWN] * (x.rank - 1), last))
        along = self._axis(x.rank, None if axis is None else axis.value)
        require(along != x.rank - 1, f"the axis is {along}, the last, which has the real and imaginary part")
        given = None if length is None else UNKNOWN if length.value is None else int(length.value)
        count = self._count(x.shape[along], given)
        require(count > 0 or count == UNKNOWN, f"{count} elements have no transform")
        is_half = self.onesided and not self.inverse and count != UNKNOWN
        return x.with_shape((*x.shape[:along], count // 2 + 1 if is_half else count, *x.shape[along + 1 : -1], last))

    def _axis(self, rank: int, given: Array | None) -> int:
        return normal_axis(self.axis if given is None else int(given), rank)

    def _count(self, own: int, given: int | None) -> int:
        """The number n of elements that the transform is of, by the length of the axis and input 1."""
        if given is not None:
            return given
        return 2 * (own - 1) if self.onesided and self.inverse and own != UNKNOWN else own

    def beyond_tensorrt(self, x: TensorType, length: TensorType | None = None, axis: TensorType | None = None) -> str:
        return "is a Fourier transform, of which no TensorRT has a layer"

    def evaluate(self, x: Array, length: Array | None = None, axis: Array | None = None) -> Array:
        along = self._axis(x.ndim, axis)
        values = np.moveaxis(x.astype(np.float64), along, -1)
        values = values[..., 0, :] + (1j * values[..., 1, :] if x.shape[-1] == 2 else 0)
        n = self._count(values.shape[-1], None if length is None else int(length))
        used = n // 2 + 1 if self.onesided and self.inverse else n
        values = values[..., :used]
        turns = np.outer(np.arange(values.shape[-1]), np.arange(n)) % n
        powers = np.exp((2j if self.inverse else -2j) * np.pi * turns / n)
        if self.onesided and self.inverse:
            twice = (np.arange(values.shape[-1]) % n != 0) & (np.arange(values.shape[-1]) * 2 != n)
            made = (values * (1 + twice) @ powers).real[..., None, :] / n
        else:
            found = values @ powers[:, : n // 2 + 1 if self.onesided else n] / (n if self.inverse else 1)
            made = np.stack([found.real, found.imag], -2)
        return np.moveaxis(made, -1, along).astype(x.dtype)

    def lower(self, x: Any, length: Array | None = None, axis: Array | None = None) -> Any:
        values, along = wide(jnp.asarray(x)), self._axis(x.ndim, axis)
        n = self._count(x.shape[along], None if length is None else int(length))
        if x.shape[-1] == 1 and not self.onesided:
            made = _lower_real(values[..., 0], n, along)
            made = made.conj() / n if self.inverse else made
        else:
            is_real = x.shape[-1] == 1
            numbers = values[..., 0] if is_real else jax.lax.complex(values[..., 0], values[..., 1])
            made = FAST[self.inverse, self.onesided](numbers, n, along)
        parts = [made] if self.onesided and self.inverse else [made.real, made.imag]
        return jnp.stack(parts, -1).astype(x.dtype)


def _lower_real(x: Any, n: int, axis: int) -> Any:
    """The transform of real numbers, one half of which are the conjugates of the other."""
    half = jnp.fft.rfft(x, n, axis)
    rest = jax.lax.slice_in_dim(half, 1, (n + 1) // 2, axis=axis)
    return jnp.concatenate([half, jnp.flip(rest, axis).conj()], axis)


class FourierMethods(AddsLayers):
    """The ``add_`` methods of this family."""

    FAMILY = "products and transforms"

    def add_dft(self, input: ITensor, axis: int = -2, inverse: bool = False, onesided: bool = False) -> IDFTLayer:
        """The discrete Fourier transform along an axis; netloop's own."""
        made = IDFTLayer(axis=axis, inverse=inverse, onesided=onesided)
        return self.add(made, [check_tensor(input, "input")])
