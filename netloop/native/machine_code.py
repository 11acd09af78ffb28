"""Machine code for the processor at hand, from the code of the product."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

from netloop.native.code import ir
from netloop.native.product_code import HANDLER, ProductCode

llvm: Any = import_module("llvmlite.binding")

KERNELS: dict[str, tuple[int, tuple[int, ...]]] = {"avx512f": (16, (8, 4, 2, 1)), "avx2": (8, (6, 4, 2, 1))}
"""The floats of a vector and the rows of the micro-kernels, whose sums fit the registers, by the feature they need."""


class MachineCode(NamedTuple):
    """Functions in memory, for as long as the process lives.

    Attributes:
        handler: the address of the handler of products.
        width: the number of columns of a panel.
        engine: the owner of the memory.
    """

    handler: int
    width: int
    engine: Any


def vector_kernels() -> tuple[int, tuple[int, ...]] | None:
    """The floats of a vector of this processor and the rows of its micro-kernels; None if it has no such vectors."""
    features = llvm.get_host_cpu_features()
    fits = (kernels for feature, kernels in KERNELS.items() if features.get(feature) and features.get("fma"))
    return next(fits, None)


def compile_product(lanes: int, sizes: tuple[int, ...]) -> MachineCode:
    """Compile the product for vectors of ``lanes`` floats."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    features = llvm.get_host_cpu_features().flatten()
    machine = target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=3, jit=True)
    module = ir.Module("netloop")
    module.triple, module.data_layout = target.triple, str(machine.target_data)
    code = ProductCode(module, lanes, sizes)
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    engine = llvm.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    return MachineCode(engine.get_function_address(HANDLER), code.width, engine)
