"""Networks as modules of IREE, whose runtime runs them by C or Python."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from netloop.formats.deploy import stablehlo
from netloop.formats.deploy.refusal import refused
from netloop.model.network import INetworkDefinition
from netloop.process.atomic_write import write_whole

COMPILER: Any = import_module("iree.compiler")

DOUBLES = "--iree-input-demote-f64-to-f32=false"
"""Doubles stay doubles, where the compiler would make them floats."""
GENERIC = ("--iree-llvmcpu-target-cpu=generic",)
"""Code for any processor of this kind; ``host`` instead of ``generic`` makes faster code for this one."""


def write(
    network: INetworkDefinition,
    path: Path,
    shapes: stablehlo.Shapes | None,
    batch: str | None,
    tf32: bool,
    backends: Sequence[str] = ("llvm-cpu",),
    flags: Sequence[str] = GENERIC,
) -> None:
    """Write the module. Its function ``main`` takes the inputs, and returns the outputs, in the order of their names.

    Raises:
        ValueError: a batch is asked for, which a program of fixed shapes has not.
        NetworkError: IREE's compiler refuses the program.
    """
    if batch is not None:
        raise ValueError("a module of IREE has fixed shapes: leave out batch, and give shapes")
    # a program for several platforms takes an argument more, the number of the present one
    program = stablehlo.exported(network, shapes, platforms=["cpu"], tf32=tf32)
    try:
        module = COMPILER.compile_str(
            program.mlir_module(), target_backends=list(backends), input_type="stablehlo", extra_args=[DOUBLES, *flags]
        )
    except COMPILER.CompilerToolError as error:
        raise refused("IREE's compiler", error) from error
    write_whole(path, [module])
