"""The product of rows and packed weights, as a function of JAX."""

from __future__ import annotations

import platform
import sys
import threading
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap

TARGET = "netloop.product"
"""The name by which XLA finds the handler."""

LOCK = threading.Lock()


def panel_width() -> int | None:
    """The number of columns of a panel on this machine; None if products with packed weights do not run on it."""
    with LOCK:
        made = _machine_code()
    return None if made is None else made.width


@cache  # the code is in memory for as long as somebody keeps it
def _machine_code() -> Any:
    """The product as machine code that XLA knows; None if there is none for this machine."""
    if sys.platform != "linux" or platform.machine() != "x86_64" or find_spec("llvmlite") is None:
        return None
    machine_code: Any = import_module("netloop.native.machine_code")
    kernels = machine_code.vector_kernels()
    if kernels is None:
        return None
    made = machine_code.compile_product(*kernels)
    jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(made.handler), platform="cpu")
    return made


def packed_product(rows: jax.Array, panels: jax.Array, columns: int) -> jax.Array:
    """The product of float32 rows [.., length] and a matrix of ``columns`` columns, packed as [panels, length, width].

    Only on CPUs. Under ``jax.vmap`` the rows of all members are multiplied at once.
    """

    @custom_vmap
    def multiplied(rows: jax.Array, panels: jax.Array) -> jax.Array:
        return _of_rows(rows, panels, columns)

    @multiplied.def_vmap
    def _(size: int, batched: list[bool], rows: jax.Array, panels: jax.Array) -> tuple[jax.Array, bool]:
        if batched[1]:
            members = rows if batched[0] else jnp.broadcast_to(rows, (size, *rows.shape))
            return jax.lax.map(lambda each: multiplied(*each), (members, panels)), True
        return multiplied(rows, panels), True

    return multiplied(rows, panels)


def _of_rows(rows: jax.Array, panels: jax.Array, columns: int) -> jax.Array:
    count = prod(rows.shape[:-1])
    call = jax.ffi.ffi_call(TARGET, jax.ShapeDtypeStruct((count, columns), rows.dtype))
    return jnp.asarray(call(rows.reshape(count, rows.shape[-1]), panels)).reshape(*rows.shape[:-1], columns)
