"""Fusions of XLA's CPU for a library that compute wrong numbers; docs/decisions/0038 has the conditions.

XLA gives some operations to a library by fusions of the kind ``__ynn_fusion``. A fusion with a reduction computes wrong
numbers for a few operations. Nothing in a network prevents such a fusion for certain, so the compiled program decides.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import jax

from netloop.compiler.xla_faults.text import RESHAPES, Instruction, computations, instructions, numbers, operand_names

WITHOUT_LIBRARY_FAULTS = {"xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT"}
"""XLA's compiler options for a program with a fault: the library only computes single products.

Softmaxes and reductions of a program take 2 to 5 times as long with them, so they are for such programs only.
"""

LOSES_NARROW_PRODUCTS = jax.__version_info__ < (0, 11)
"""Whether XLA's reductions of products over three numbers are wrong from 16,384 columns on (JAX's issue 39103)."""

CALL = re.compile(r" fusion\((?P<operands>[^)\n]*)\)[^\n]*calls=%(?P<name>[\w.-]+)[^\n]*__ynn_fusion")
CONSTANT = re.compile(r"%([\w.-]+) = \S+ constant\(([^)\n]*)\)")
LAST_AXIS = re.compile(r"rhs_contracting_dims=\{(\d+)\}")
BATCH_AXES = re.compile(r"rhs_batch_dims=\{([\d,]*)\}")
MOVED_AXES = re.compile(r" dimensions=\{([\d,]*)\}")

REDUCTIONS = {"reduce", "reduce-window"}
PRODUCTS = {"dot", "convolution"}
EXTREMES = {"maximum", "minimum"}
VARYING = {"constant", "parameter", "iota", "pad", *REDUCTIONS, *PRODUCTS}
"""Operations whose results vary along all axes, for all that is known."""
ARITHMETIC = {"add", "subtract", "multiply", "negate"}
FLOATS = {"f64", "f32", "bf16", "f16"}
BYTES = {"s8", "u8"}


class Fusion(NamedTuple):
    """A fusion: its instructions, by their names and in order, and its operands that are constants, as text."""

    instructions: dict[str, Instruction]
    constants: list[str | None]


def has_library_fault(text: str) -> bool:
    """Whether a compiled program, as XLA's text, has a fusion that may compute wrong numbers."""
    return "__ynn_fusion" in text and any(_is_faulty(fusion) for fusion in _fusions(text))


def _fusions(text: str) -> Iterator[Fusion]:
    bodies, constants = computations(text), dict(CONSTANT.findall(text))
    for call in CALL.finditer(text):
        values = [constants.get(name) for name in operand_names(call["operands"])]
        yield Fusion(instructions(bodies.get(call["name"], "")), values)


def _is_faulty(fusion: Fusion) -> bool:
    inside = fusion.instructions.values()
    if not any(instruction.op in REDUCTIONS for instruction in inside):
        return False
    axes = _varying_axes(fusion)
    return any(
        _is_faulty_product(instruction, axes, fusion) or _loses_nan(instruction, fusion) or _saturates(instruction)
        for instruction in inside
    )


def _varying_axes(fusion: Fusion) -> dict[str, set[int]]:
    """The axes along which each value has different numbers; instructions follow their operands."""
    axes: dict[str, set[int]] = {}
    for instruction in fusion.instructions.values():
        axes[instruction.name] = _varying_axes_of(instruction, axes, fusion)
    return axes


def _varying_axes_of(instruction: Instruction, axes: Mapping[str, set[int]], fusion: Fusion) -> set[int]:
    long = {axis for axis, length in enumerate(instruction.dims) if length > 1}
    operands = [name for name in instruction.operands if name in axes]
    if instruction.op in VARYING or not operands:
        return long
    of_first, moved = axes[operands[0]], MOVED_AXES.search(instruction.rest)
    if instruction.op == "broadcast" and moved:
        to = numbers(moved[1])
        return long & {to[axis] for axis in of_first}
    if instruction.op == "transpose" and moved:
        return {to for to, axis in enumerate(numbers(moved[1])) if axis in of_first}
    if instruction.op in RESHAPES:
        return _reshaped(of_first, fusion.instructions[operands[0]].dims, instruction.dims)
    return long & set[int]().union(*(axes[name] for name in operands))


def _reshaped(axes: set[int], before: tuple[int, ...], after: tuple[int, ...]) -> set[int]:
    """The axes along which a reshaped value varies: the same if only axes of length 1 come or go, else all."""
    old, new = ([axis for axis, length in enumerate(dims) if length > 1] for dims in (before, after))
    if not axes or [before[axis] for axis in old] != [after[axis] for axis in new]:
        return {*new} if axes else set()
    return {to for axis, to in zip(old, new, strict=True) if axis in axes}


def _is_faulty_product(instruction: Instruction, axes: Mapping[str, set[int]], fusion: Fusion) -> bool:
    """Whether the second operand of a product is one number, in each batch, or has rows of three that are summed."""
    if instruction.op not in PRODUCTS or instruction.operands[1] not in axes:
        return False
    right = fusion.instructions[instruction.operands[1]]
    batch, last = BATCH_AXES.search(instruction.rest), LAST_AXIS.search(instruction.rest)
    if axes[right.name] <= {*numbers(batch[1] if batch else "")}:
        return True
    return LOSES_NARROW_PRODUCTS and bool(last) and int(last[1]) == len(right.dims) - 1 and right.dims[-1] == 3


def _loses_nan(instruction: Instruction, fusion: Fusion) -> bool:
    """Whether an element-wise extreme drops a NaN: x86's instructions return the second operand if one is NaN, and the
    library makes one clamp of a minimum of a maximum, with other operands first.
    """
    if instruction.op not in EXTREMES or instruction.dtype not in FLOATS:
        return False
    first = fusion.instructions.get(instruction.operands[0])
    while first is not None and first.op in {"broadcast", "reshape", "bitcast", "convert"}:
        first = fusion.instructions.get(first.operands[0])
    number = None if first is None else _constant(first, fusion)
    second = fusion.instructions.get(instruction.operands[1])
    is_clamp = instruction.op == "minimum" and second is not None and second.op == "maximum"
    return is_clamp or number is None or "nan" in number or "..." in number


def _saturates(instruction: Instruction) -> bool:
    """Whether it is arithmetic of 8 bits, which the library does not let wrap."""
    return instruction.op in ARITHMETIC and instruction.dtype in BYTES


def _constant(instruction: Instruction, fusion: Fusion) -> str | None:
    """The constant that an instruction is, or that the fusion gets as this parameter; None for any other."""
    if instruction.op == "parameter":
        return fusion.constants[int(instruction.argument)]
    return instruction.argument if instruction.op == "constant" else None
