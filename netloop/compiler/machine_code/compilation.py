"""Kernels in memory, for the processor at hand."""

import ctypes
import hashlib
import threading
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import jax

LOCK = threading.Lock()
HANDLER = "handler"
"""The name of the function of a kernel that XLA calls."""
OPTIMIZATION_LEVEL = 3
"""How much LLVM's code generator optimizes, of 0 to 3; 1 and 2 take as long."""


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


_KERNELS: dict[str, MachineCode] = {}


@cache  # it lives as long as the process
def _waiting_places(size: int, line: int) -> tuple[int, Any]:
    """The address of the memory in which threads wait for jobs, at the beginning of a line, and its owner."""
    memory = (ctypes.c_char * (size + line))()
    return -(-ctypes.addressof(memory) // line) * line, memory


@cache
def _compiler(level: int) -> Any:
    """The compiler of LLVM for the processor at hand; another one for each kernel would stay in memory with it."""
    llvm, jobs = import_module("llvmlite.binding"), import_module(f"{__package__}.jobs")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.add_symbol(jobs.WAITING_PLACES, _waiting_places(jobs.WAITING_SIZE, jobs.LINE)[0])
    return _machine(level)


def _machine(level: int) -> Any:
    llvm = import_module("llvmlite.binding")
    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    return llvm.Target.from_default_triple().create_target_machine(cpu=cpu, features=features, opt=level, jit=True)


def compiled(kind: str, write: Callable[[Any], Any]) -> MachineCode:
    """The kernel whose code a function writes into a module of LLVM; equal codes are one kernel."""
    with LOCK:
        llvm, ir = import_module("llvmlite.binding"), import_module("llvmlite.ir")
        compiler, module = _compiler(OPTIMIZATION_LEVEL), ir.Module("netloop")
        module.triple, module.data_layout = compiler.triple, str(compiler.target_data)
        write(module)
        text = str(module)
        # programs that JAX keeps on disk name the kernel, so that the name has to say all of it
        digest = hashlib.sha256(f"{OPTIMIZATION_LEVEL}{text}".encode()).hexdigest()
        name = f"netloop.{kind}.{digest[:32]}"
        if name not in _KERNELS:
            parsed = llvm.parse_assembly(text)
            parsed.verify()
            # as long as the process lives, an engine keeps 0.35 MB for an object, and 1.4 MB for a module
            engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine(OPTIMIZATION_LEVEL))
            engine.add_object_file(llvm.ObjectFileRef.from_data(compiler.emit_object(parsed)))
            engine.finalize_object()
            code = MachineCode(name, engine.get_function_address(HANDLER), engine)
            jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(code.handler), platform="cpu")
            _KERNELS[name] = code
        return _KERNELS[name]
