"""Machine code of cells for the processor at hand, as functions of JAX."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from netloop.compiler.machine_code.compilation import MachineCode, compiled
from netloop.compiler.machine_code.processor import FLOAT32, Processor
from netloop.compiler.recurrent.cell import RecurrentCell


@cache
def machine_code(cell: RecurrentCell, vectors: Processor) -> MachineCode:
    """The kernel of a cell, compiled once."""
    # it needs the extra
    kernel = import_module(f"{__package__}.kernel")
    return compiled("recurrent", lambda module: kernel.RecurrentKernel(module, cell, *vectors))


def iterate(cell: RecurrentCell, vectors: Processor, iterations: int, arrays: Sequence[Any]) -> list[jax.Array]:
    """The stacked values [count, rows, units] and the states [rows, units] after all iterations of a cell, on a CPU.

    ``arrays`` are the iterators, the invariants, the weights [blocks, depth, n, lanes] of each source, and the states
    before.
    """
    shape = cell.rows, cell.units
    shapes = [(iterations, *shape)] * len(cell.stacked) + [(2, *shape)] * len(cell.states)
    shapes += [(len(cell.kept), *shape), (cell.numbers_ahead(vectors.lanes),)]
    results = [jax.ShapeDtypeStruct(own, np.float32) for own in shapes]
    before = [FLOAT32] * (len(cell.iterators) + len(cell.invariants))
    types = [*before, *(cell.weight_type for _ in cell.sources), *(FLOAT32 for _ in cell.states)]
    # under vmap the members are computed one after the other
    call = jax.ffi.ffi_call(machine_code(cell, vectors).target, results, vmap_method="sequential")
    arrays = call(jnp.full(1, iterations, np.int32), *map(jnp.asarray, arrays, types))
    count = len(cell.stacked)
    return [*arrays[:count], *(pair[iterations % 2] for pair in arrays[count : count + len(cell.states)])]
