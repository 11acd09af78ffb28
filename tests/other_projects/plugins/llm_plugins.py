"""The small plugins of TensorRT-LLM's compiled library that its tests of functions ask for, as functions of JAX.

Those for attention, quantized products, mixtures of experts, state spaces and several GPUs are not here.
"""

from collections.abc import Callable
from inspect import signature
from typing import Any

import jax
import jax.numpy as jnp

import netloop
from netloop.tools.compat.versions.older_plugins import IPluginCreator

OWN = "rewritten for netloop"
"""The namespace of the functions, by which plans find them."""


def identity(x: Any) -> Any:
    """The input."""
    return x


def lookup(indices: Any, table: Any) -> Any:
    """Rows of a table."""
    return table[indices]


def product(a: Any, b: Any, transa: int, transb: int) -> Any:
    """The product of two matrices, of which either may be transposed."""
    a, b = (jnp.swapaxes(x, -1, -2) if turned else x for x, turned in ((a, transa), (b, transb)))
    return jnp.matmul(a, b, preferred_element_type=_wide(a)).astype(a.dtype)


def sum_along_last_axis(x: Any) -> Any:
    """The sums of all elements up to each one."""
    return jnp.cumsum(x.astype(_wide(x)), -1).astype(x.dtype)


def layer_norm(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    """The input without its mean, divided by its standard deviation."""
    wide = x.astype(_wide(x))
    centred = wide - wide.mean(-1, keepdims=True)
    return (_divided(centred, eps) * weight + bias).astype(x.dtype)


def rms_norm(x: Any, weight: Any, eps: float) -> Any:
    """The input, divided by the root of its mean square."""
    return (_divided(x.astype(_wide(x)), eps) * weight).astype(x.dtype)


def _wide(x: Any) -> Any:
    return jnp.float32 if jnp.issubdtype(x.dtype, jnp.floating) else x.dtype


def _divided(x: Any, eps: float) -> Any:
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + jnp.float32(eps))


class Creator(IPluginCreator):
    """The creator of a plugin, of whose fields it takes those that the function has as parameters."""

    plugin_version = "1"

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name, self.plugin = name, netloop.jax_plugin(name, namespace=OWN)(function)
        self.parameters = signature(function).parameters

    def create_plugin(self, name: str, field_collection: Any) -> Any:
        taken = (field for field in field_collection if field.name in self.parameters)
        return self.plugin(**{field.name: field.data.reshape(-1)[0].item() for field in taken})


def register(namespace: str) -> None:
    """Register the creators, as the library does when it is loaded."""
    import tensorrt  # the version of the suite

    functions = {"CumsumLastDim": sum_along_last_axis, "Gemm": product, "Identity": identity,
                 "Layernorm": layer_norm, "Lookup": lookup, "Rmsnorm": rms_norm}  # fmt: skip
    for name, function in functions.items():
        tensorrt.get_plugin_registry().register_creator(Creator(name, function), namespace)
