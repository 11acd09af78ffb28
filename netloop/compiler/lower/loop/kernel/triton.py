"""The only place that knows Pallas and its Triton backend: calls of kernels, loads and stores.

JAX says that it will remove this backend. Another one, such as Mosaic GPU, would take its place in this file: nothing
else asks for more than loads and stores at computed positions of flat arrays, and arithmetic on blocks.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.lax import platform_dependent

pallas: Any
backend: Any
with warnings.catch_warnings():
    # Python shows a warning of JAX's own modules only to those who ask for it
    warnings.simplefilter("ignore", DeprecationWarning)
    try:
        from jax.experimental import pallas
        from jax.experimental.pallas import triton as backend
    except ImportError:  # pragma: no cover (a release of JAX without it)
        pallas = backend = None


def is_there() -> bool:
    """Whether this release of JAX has the backend."""
    return backend is not None


def load(reference: Any, index: Any, mask: Any) -> Any:
    """The numbers of a flat array at some positions, and zeros where the mask has none."""
    if mask is None:
        return backend.load(reference.at[index])
    return backend.load(reference.at[index], mask=mask, other=np.zeros((), reference.dtype))


def store(reference: Any, index: Any, value: Any, mask: Any) -> None:
    """Write numbers at some positions of a flat array, without those that a mask leaves out."""
    backend.store(reference.at[index], value, mask=mask)


def program(axis: int) -> Any:
    """The number of the program along an axis of the grid; only known outside of loops."""
    return pallas.program_id(axis)


def called(
    kernel: Callable[..., None],
    operands: Sequence[Any],
    results: Sequence[jax.ShapeDtypeStruct],
    grid: Sequence[int],
    aliases: dict[int, int],
    warps: int,
) -> list[Any]:
    """The results of a kernel, of flat arrays.

    On other devices than GPUs, where tests run programs for GPUs, JAX's interpreter of kernels takes over.

    Args:
        kernel: the kernel, which takes a reference of each operand and result.
        operands: the operands.
        results: the types of the results.
        grid: the numbers of programs.
        aliases: the results that begin with the numbers of an operand, by the position of the latter.
        warps: the number of warps of one program.
    """

    def call(*arrays: Any, **options: Any) -> list[Any]:
        fixed = {"out_shape": list(results), "grid": tuple(grid), "input_output_aliases": aliases}
        return pallas.pallas_call(kernel, **fixed, name="netloop_loop", **options)(*arrays)

    def on_gpu(*arrays: Any) -> list[Any]:
        return call(*arrays, compiler_params=backend.CompilerParams(num_warps=warps, num_stages=1))

    def interpreted(*arrays: Any) -> list[Any]:
        return call(*arrays, interpret=True)

    return platform_dependent(*operands, cuda=on_gpu, rocm=on_gpu, default=interpreted)
