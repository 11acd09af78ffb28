"""Machine code of cells for the processor at hand, as functions of JAX."""

from __future__ import annotations

import hashlib
import platform
import sys
import threading
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from netloop.compiler.recurrent.cell import FLOAT32, RecurrentCell

LOCK = threading.Lock()


class Processor(NamedTuple):
    """The vectors of a processor.

    Attributes:
        lanes: the float32 of a vector.
        registers: the vectors of sums that its registers hold next to the operands.
    """

    lanes: int
    registers: int


PROCESSORS = {"avx512f": Processor(16, 24), "avx2": Processor(8, 12)}
"""The vectors by the feature that they need."""


@cache
def processor() -> Processor | None:
    """The vectors of this machine; None if there are no kernels for it, or the extra is not installed."""
    if sys.platform != "linux" or platform.machine() != "x86_64" or find_spec("llvmlite") is None:
        return None
    features = _llvm().get_host_cpu_features()
    return next((own for feature, own in PROCESSORS.items() if features.get(feature) and features.get("fma")), None)


def _llvm() -> Any:
    return import_module("llvmlite.binding")


class MachineCode(NamedTuple):
    """A kernel in memory, for as long as the process lives.

    Attributes:
        target: the name by which XLA finds it.
        handler: its address.
        engine: the owner of the memory.
    """

    target: str
    handler: int
    engine: Any


KERNELS: dict[str, MachineCode] = {}
"""The kernels by their names: their code is in memory for as long as somebody keeps it."""


@cache
def _machine_code(cell: RecurrentCell, vectors: Processor) -> MachineCode:
    # these need the extra
    ir, own = import_module("llvmlite.ir"), import_module(f"{__package__}.kernel")
    module = ir.Module("netloop")
    own.RecurrentKernel(module, cell, *vectors)
    text = str(module)
    # programs that JAX keeps on disk name the kernel, so that the name has to say all of it
    name = "netloop.recurrent." + hashlib.sha256(text.encode()).hexdigest()[:32]
    # cells whose numbers differ in float64 only have the same text
    if name not in KERNELS:
        KERNELS[name] = _compiled(name, text, own.HANDLER)
    return KERNELS[name]


def _compiled(name: str, text: str, handler: str) -> MachineCode:
    llvm = _llvm()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target, features = llvm.Target.from_default_triple(), llvm.get_host_cpu_features().flatten()
    machine = target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=3, jit=True)
    parsed = llvm.parse_assembly(text)
    parsed.triple, parsed.data_layout = target.triple, str(machine.target_data)
    parsed.verify()
    engine = llvm.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    code = MachineCode(name, engine.get_function_address(handler), engine)
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(code.handler), platform="cpu")
    return code


def machine_code(cell: RecurrentCell, vectors: Processor) -> MachineCode:
    """The kernel of a cell, compiled once."""
    with LOCK:
        return _machine_code(cell, vectors)


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
