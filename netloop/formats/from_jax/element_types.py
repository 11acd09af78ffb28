"""Element types of JAX's abstract values, as networks have them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from netloop.values.types import DATA_TYPES

KEY_WORDS = {"key<fry>": 2}
"""The number of uint32 words of a random key, by the name of its type."""

PARTS = {np.dtype(np.complex64): np.dtype(np.float32), np.dtype(np.complex128): np.dtype(np.float64)}
"""The type of the real and imaginary parts of complex types."""


def is_key(aval: Any) -> bool:
    """Whether the elements are random keys."""
    return jnp.issubdtype(aval.dtype, jax.dtypes.prng_key)


def is_complex(aval: Any) -> bool:
    """Whether the elements are complex numbers."""
    return hasattr(aval, "dtype") and not is_key(aval) and np.dtype(aval.dtype) in PARTS


def element_type(aval: Any) -> np.dtype[Any]:
    """The element type of a tensor with the elements of an abstract value.

    Random keys are words of uint32, and complex numbers are their parts.
    """
    if is_key(aval):
        return np.dtype(np.uint32)
    return PARTS.get(np.dtype(aval.dtype), np.dtype(aval.dtype))


def has_parts(aval: Any) -> bool:
    """Whether tensors have one axis more: for the words of random keys, or the parts of complex numbers."""
    return is_key(aval) or is_complex(aval)


def tensor_shape(aval: Any) -> tuple[Any, ...]:
    """The shape of a tensor for an abstract value, with an axis for the words or parts of an element."""
    if is_key(aval):
        return (*aval.shape, KEY_WORDS[str(aval.dtype)])
    return (*aval.shape, 2) if is_complex(aval) else tuple(aval.shape)


def tensor_array(value: Any, aval: Any) -> np.ndarray[Any, Any]:
    """The array of a tensor for a value."""
    array = np.asarray(jax.random.key_data(value) if is_key(aval) else value)
    if is_complex(aval):
        return np.stack([np.real(array), np.imag(array)], -1).astype(element_type(aval))
    return array.astype(element_type(aval))


def array_aval(aval: Any) -> jax.ShapeDtypeStruct:
    """The type of the array that is a tensor for an abstract value."""
    return jax.ShapeDtypeStruct(tensor_shape(aval), element_type(aval))


def is_tensor(aval: Any) -> bool:
    """Whether networks have tensors of an abstract value."""
    if not hasattr(aval, "dtype"):
        return False
    if is_key(aval):
        return str(aval.dtype) in KEY_WORDS
    return aval.dtype == jax.dtypes.float0 or element_type(aval) in DATA_TYPES
