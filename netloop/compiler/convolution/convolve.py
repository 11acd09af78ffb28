"""Kernels of convolutions for the processor at hand, as functions of JAX."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from itertools import accumulate, pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from netloop.compiler.convolution.convolution import Convolution
from netloop.compiler.convolution.division import panels_of
from netloop.compiler.machine_code.compilation import MachineCode, compiled
from netloop.compiler.machine_code.processor import FLOAT32, Processor
from netloop.values.types import Array


@cache
def machine_code(convolution: Convolution, processor: Processor) -> MachineCode:
    """The kernel of a convolution, compiled once."""
    # it needs the extra
    kernel = import_module(f"{__package__}.kernel")
    return compiled("convolution", lambda module: kernel.ConvolutionKernel(module, convolution, processor))


def convolve(convolution: Convolution, processor: Processor, arrays: Sequence[Any]) -> jax.Array:
    """The output [batch, rows, columns, maps] of a convolution, on a CPU.

    ``arrays`` are x, the weights as ``packed`` returns them, and the arrays of the values.
    """
    shape = convolution.batch, convolution.rows.count, convolution.columns.count, convolution.maps
    # under vmap the members are computed one after the other
    target = machine_code(convolution, processor).target
    call = jax.ffi.ffi_call(target, jax.ShapeDtypeStruct(shape, FLOAT32), vmap_method="sequential")
    return call(*(jnp.asarray(array, FLOAT32) for array in arrays))


def packed(xp: Any, kernel: Any, convolution: Convolution, processor: Processor) -> Any:
    """A kernel [rows, columns, channels, maps] in the order in which a kernel of machine code reads it, [size].

    The weights of a panel follow each other, a row of vectors for each number of a window.
    """
    groups = panels_of(convolution, processor).groups
    rows = kernel.reshape(convolution.depth, groups, -1)
    rows = xp.pad(rows, ((0, 0), (0, 0), (0, -rows.shape[-1] % processor.lanes)))
    panels = _panels(convolution, processor)
    return xp.concatenate([rows[:, group, own].reshape(-1) for group in range(groups) for own in panels])


def unpacked(array: Array, convolution: Convolution, processor: Processor) -> Array:
    """The kernel [rows, columns, channels, maps] of which ``packed`` made an array."""
    own, panels = convolution, _panels(convolution, processor)
    parts = np.split(
        array.reshape(panels_of(own, processor).groups, -1), [own.depth * panel.stop for panel in panels], 1
    )
    rows = np.concatenate([part.reshape(len(part), own.depth, -1) for part in parts[:-1]], 2)
    rows = rows[:, :, : own.maps // len(rows)].transpose(1, 0, 2)
    return rows.reshape(own.rows.size, own.columns.size, -1, own.maps)


def _panels(convolution: Convolution, processor: Processor) -> list[slice]:
    """The maps of a group of which a panel has the weights; all, if a vector of a depthwise convolution reads a row."""
    if convolution.is_depthwise:
        return [slice(0, -(-convolution.maps // processor.lanes) * processor.lanes)]
    ends = [processor.lanes * end for end in accumulate(panels_of(convolution, processor).vectors, initial=0)]
    return [slice(*pair) for pair in pairwise(ends)]
