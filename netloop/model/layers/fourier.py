"""The discrete Fourier transform."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from netloop.model.graph import ITensor, NetworkBase, Operation, layer
from netloop.values.diagnostics import require
from netloop.values.enums import LayerType
from netloop.values.types import UNKNOWN, Array, TensorType, normal_axis, wide

# fmt: off
FAST: dict[tuple[bool, bool], Callable[..., Any]] = {
    (False, False): jnp.fft.fft,
    (False, True):  jnp.fft.rfft,
    (True,  False): jnp.fft.ifft,
    (True,  True):  jnp.fft.irfft,
}
# fmt: on
"""JAX's transforms, by ``inverse`` and ``onesided``."""


@layer(LayerType.DFT, "DFT")
class IDFTLayer(Operation):
    """The discrete Fourier transform along an axis, or its inverse.

    ::

        output[k] = sum over j < n of input[j] e^(-2 pi i j k / n)
        inverse:    sum over j < n of input[j] e^( 2 pi i j k / n) / n

    Numbers are complex: the last axis has the real and the imaginary part, or only the real part. n is input 1, an
    int32 or int64 scalar, by default the length of the axis; the axis is truncated or padded with zeros to n. The
    output has the shape of the input, but n elements along the axis, and 2 along the last. Floating-point; half types
    are computed in float32.

    With ``onesided``, a transform takes real numbers and its output has only elements 0 to floor(n / 2); the others
    are their conjugates in reverse order. The inverse takes these elements, with n by default twice the length of the
    axis minus 2, and its output is real, with one element along the last axis.

    A netloop extension with the meaning of ONNX's operator DFT.

    Attributes:
        axis: the axis, any except the last; a negative value counts from the end. Input 2, an int32 or int64 scalar,
            replaces it.
        inverse: whether to compute the inverse.
        onesided: whether complex numbers are represented by one half of a conjugate-symmetric axis.
    """

    MAX_INPUTS = 3
    SHAPE_INPUTS = frozenset({1, 2})
    INPUT_OF = {"axis": 2}

    axis: int = -2
    inverse: bool = False
    onesided: bool = False

    def infer(self, x: TensorType, length: TensorType | None = None, axis: TensorType | None = None) -> TensorType:
        require(x.is_float, f"the input must be floating-point, not {x}", fix="convert it with add_cast")
        require(
            x.rank >= 2,
            f"the input is {x}, but must have an axis to transform before the last axis",
            why="the last axis has the real and the imaginary part",
        )
        for name, tensor_type in (("length", length), ("axis", axis)):
            takes = tensor_type is None or (tensor_type.rank == 0 and tensor_type.is_index)
            require(
                takes,
                f"the {name} must be an int32 or int64 scalar, not {tensor_type}",
                why="it is one number for the whole transform",
            )
        parts = (1, 2) if not self.onesided else (2,) if self.inverse else (1,)
        require(
            x.shape[-1] in (*parts, UNKNOWN),
            f"the last axis of {x} has {x.shape[-1]} elements, but must have {' or '.join(map(str, parts))}",
            why="they are the real and the imaginary part; onesided implies real numbers on the other side",
        )
        last = 1 if self.onesided and self.inverse else 2
        if axis is not None and axis.value is None:
            return x.with_shape((*[UNKNOWN] * (x.rank - 1), last))
        along = self._axis(x.rank, None if axis is None else axis.value)
        what = f"the axis is {along}, the last, which has the real and the imaginary part"
        require(along != x.rank - 1, what, "both parts make one number")
        number = None if length is None else UNKNOWN if length.value is None else int(length.value)
        count = self._count(x.shape[along], number)
        require(count > 0 or count == UNKNOWN, f"a transform of {count} elements is not defined", "it is a sum")
        is_half = self.onesided and not self.inverse and count != UNKNOWN
        return x.with_shape((*x.shape[:along], count // 2 + 1 if is_half else count, *x.shape[along + 1 : -1], last))

    def _axis(self, rank: int, axis: Array | None) -> int:
        return normal_axis(self.axis if axis is None else int(axis), rank)

    def _count(self, own: int, length: int | None) -> int:
        """The number n of elements of the transform, from the length of the axis and input 1."""
        if length is not None:
            return length
        return 2 * (own - 1) if self.onesided and self.inverse and own != UNKNOWN else own

    def beyond_tensorrt(self, x: TensorType, length: TensorType | None = None, axis: TensorType | None = None) -> str:
        return "is a Fourier transform"

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
            result = (values * (1 + twice) @ powers).real[..., None, :] / n
        else:
            results = values @ powers[:, : n // 2 + 1 if self.onesided else n] / (n if self.inverse else 1)
            result = np.stack([results.real, results.imag], -2)
        return np.moveaxis(result, -1, along).astype(x.dtype)

    def lower(self, x: Any, length: Array | None = None, axis: Array | None = None) -> Any:
        values, along = wide(jnp.asarray(x)), self._axis(x.ndim, axis)
        n = self._count(x.shape[along], None if length is None else int(length))
        if x.shape[-1] == 1 and not self.onesided:
            result = _lower_real(values[..., 0], n, along)
            result = result.conj() / n if self.inverse else result
        else:
            is_real = x.shape[-1] == 1
            numbers = values[..., 0] if is_real else jax.lax.complex(values[..., 0], values[..., 1])
            result = FAST[self.inverse, self.onesided](numbers, n, along)
        parts = [result] if self.onesided and self.inverse else [result.real, result.imag]
        return jnp.stack(parts, -1).astype(x.dtype)


def _lower_real(x: Any, n: int, axis: int) -> Any:
    """The transform of real numbers; one half of the result is the conjugate of the other."""
    half = jnp.fft.rfft(x, n, axis)
    rest = jax.lax.slice_in_dim(half, 1, (n + 1) // 2, axis=axis)
    return jnp.concatenate([half, jnp.flip(rest, axis).conj()], axis)


class FourierMethods(NetworkBase):
    """The ``add_`` methods of this family."""

    FAMILY = "products and transforms"

    def add_dft(self, input: ITensor, axis: int = -2, inverse: bool = False, onesided: bool = False) -> IDFTLayer:
        """The discrete Fourier transform along an axis; a netloop extension.

        ::

            output[k] = sum over j < n of input[j] e^(-2 pi i j k / n)
            inverse:    sum over j < n of input[j] e^( 2 pi i j k / n) / n

        Numbers are complex: the last axis has the real and the imaginary part, or only the real part. n is input 1,
        an int32 or int64 scalar, by default the length of the axis; the axis is truncated or padded with zeros to n.
        The output has the shape of the input, but n elements along the axis, and 2 along the last. Floating-point; half
        types are computed in float32.

        With ``onesided``, a transform takes real numbers and its output has only elements 0 to floor(n / 2); the
        others are their conjugates in reverse order. The inverse takes these elements, with n by default twice the
        length of the axis minus 2, and its output is real, with one element along the last axis.

        A netloop extension with the meaning of ONNX's operator DFT.

        Args:
            input: the input.
            axis: the axis, any except the last; a negative value counts from the end. Input 2, an int32 or int64
                scalar, replaces it.
            inverse: whether to compute the inverse.
            onesided: whether complex numbers are represented by one half of a conjugate-symmetric axis.
        """
        result = IDFTLayer(axis=axis, inverse=inverse, onesided=onesided)
        return self.add(result, input=input)
