"""Failures of the device and of memory, as findings."""

import math
import os
from collections.abc import Iterable
from typing import Any, TypeVar

import jax

from netloop.model.graph.layer import ILayer
from netloop.values.devices import JaxDevice
from netloop.values.diagnostics import Finding, reason

DEVICE_ERRORS: tuple[type[Exception], ...] = (jax.errors.JaxRuntimeError, MemoryError)
"""The errors of JAX if the compiler or the device fails, and of numpy if there is no memory for an array."""

LEAST_AWAITED = 1 << 20
"""The size in bytes of results and temporary arrays below which memory is taken for granted."""

MOST_EMPTY_ROWS = 1 << 26
"""The most rows of an output without elements. XLA writes it as a constant of empty rows, those along the axes before
the one of length 0, and each takes it 0.3 us and up to 24 bytes."""

T = TypeVar("T")


def device_finding(error: BaseException, layer: ILayer | None = None) -> Finding:
    """Return the finding for one of ``DEVICE_ERRORS``, at the layer that was computed, if that is known."""
    what, why = f"the device gave up: {str(error) or 'there is no memory left'}", reason("NL608")
    return Finding("NL608", what, why=why) if layer is None else layer.finding("NL608", what, why)


def can_run_out(compiled: jax.stages.Compiled, device: JaxDevice) -> bool:
    """Whether a program for a CPU needs so much memory that there may be too little; see ``completed``."""
    memory = compiled.memory_analysis()
    size = memory.temp_size_in_bytes + memory.output_size_in_bytes if memory else LEAST_AWAITED
    return device.platform == "cpu" and size >= LEAST_AWAITED


def require_memory(outputs: Iterable[Any]) -> None:
    """Check that all memory has room for the outputs of a program for CPUs, by their shapes and dtypes.

    XLA of JAX 0.12 ends the process (SIGFPE) where it compiles a program whose output is an iota of 2**36 elements; by
    older ones it fails in the run. A machine on which such an output has room meets that still.

    Raises:
        MemoryError: there is no room, also for the empty rows of an output without elements.
    """
    outputs = list(outputs)
    for shape in (output.shape for output in outputs if 0 in output.shape):
        rows = math.prod(shape[: shape.index(0)])
        if rows > MOST_EMPTY_ROWS:
            raise MemoryError(f"XLA cannot write the {rows:,} empty rows of an output of shape {tuple(shape)}")
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}):  # as on Windows
        return
    size = sum(math.prod(output.shape) * output.dtype.itemsize for output in outputs)
    # an output may be spread over the processes of a cluster
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * jax.process_count()
    # some may be swapped out; a system that does not say how many pages it has gives -1
    if size > 2 * memory > 0:
        raise MemoryError(f"outputs of {size:,} bytes cannot be allocated: the memory has {memory:,}")


def completed(results: T) -> T:
    """Return the results of a computation; if they are on a CPU, wait until it has ended.

    Raises:
        JaxRuntimeError: it failed.
    """
    # XLA's client for CPUs returns at once, and ends the process where an array is read whose computation has failed;
    # of JAX's functions, only this one raises
    arrays = [leaf for leaf in jax.tree.leaves(results) if isinstance(leaf, jax.Array)]
    if arrays and any(device.platform == "cpu" for device in arrays[0].devices()):
        jax.block_until_ready(arrays)
    return results
