"""Updates in place that XLA's CPU computes wrong: an array of which a part is written while another part is read.

XLA writes a part of an array in place if a fusion reads nothing of the array but this part. Where the array is reshaped
before it is written, XLA does not see what else the fusion reads, and overwrites numbers before it reads them (XLA's
issue 49176).
"""

import re
from collections.abc import Mapping

from netloop.compiler.xla_faults.text import RESHAPES, Instruction, computations, instructions, operand_names

WITHOUT_UPDATE_FAULTS = {"xla_disable_hlo_passes": "fusion"}
"""XLA's compiler options for a program with such an update: XLA computes each operation by itself."""

CALL = re.compile(r" fusion\([^\n]*calls=%([\w.-]+)")
ROOT = re.compile(r"^\s*ROOT %([\w.-]+) = (?:[^(\n]*|\([^\n]*\)) ([\w-]+)\(([^)\n]*)\)", re.MULTILINE)
STARTS = re.compile(r"\[(\d+):\d+\]")
UPDATE = "dynamic-update-slice"
MOVING = {
    "broadcast", "concatenate", "convolution", "dot", "dynamic-slice", "dynamic-update-slice", "gather", "pad",
    "reduce-window", "reverse", "scatter", "slice", "sort", "transpose",
}  # fmt: skip
"""Operations that compute an element from elements at other places, though the shape may be the same."""

Instructions = Mapping[str, Instruction]


def has_update_fault(text: str) -> bool:
    """Whether a compiled program, as XLA's text, has a fusion that may overwrite numbers before it reads them."""
    if f" {UPDATE}(" not in text:
        return False
    bodies = computations(text)
    return any(_is_faulty(bodies[name]) for name in CALL.findall(text) if f" {UPDATE}(" in bodies.get(name, ""))


def _is_faulty(computation: str) -> bool:
    body = instructions(computation)
    roots = (_without_reshapes(name, body) for name in _results(computation))
    return any(root is not None and root.op == UPDATE and _overwrites(root, body) for root in roots)


def _results(computation: str) -> list[str]:
    """The names of the results of a fusion, of which several are a tuple."""
    root = ROOT.search(computation)
    if root is None:
        return []
    return operand_names(root[3]) if root[2] == "tuple" else [root[1]]


def _without_reshapes(name: str, body: Instructions) -> Instruction | None:
    instruction = body.get(name)
    while instruction is not None and instruction.op in RESHAPES:
        instruction = body.get(instruction.operands[0])
    return instruction


def _overwrites(update: Instruction, body: Instructions) -> bool:
    """Whether an update reads, from the reshaped parameter that it writes, another part than the one it writes."""
    array = _without_reshapes(update.operands[0], body)
    written = body.get(update.operands[1])
    if array is None or array.op != "parameter" or array.name == update.operands[0] or written is None:
        return False
    whole, part, other = {array.name}, set[str](), set[str]()
    for instruction in body.values():
        operands = {*instruction.operands}
        if operands & whole and instruction.op in RESHAPES:
            whole.add(instruction.name)
        elif operands & whole and _is_read_of(written, instruction, update, body):
            part.add(instruction.name)
        elif operands & (whole | other) or (operands & part and _moves(instruction, written)):
            other.add(instruction.name)
        elif operands & part:
            part.add(instruction.name)
    return bool({*update.operands[1:]} & other)


def _is_read_of(written: Instruction, read: Instruction, update: Instruction, body: Instructions) -> bool:
    """Whether an instruction reads the part that is written."""
    is_slice = read.op in {"slice", "dynamic-slice"}
    return is_slice and _long(read.dims) == _long(written.dims) and _place(read, body) == _place(update, body)


def _place(instruction: Instruction, body: Instructions) -> list[str] | None:
    """The first index of a slice or of an update along each axis with more than one element; None if it has strides."""
    array = body[instruction.operands[0]]
    if instruction.op == "slice":
        starts = STARTS.findall(instruction.rest)
    else:
        starts = [_number(body[name]) for name in instruction.operands[2 if instruction.op == UPDATE else 1 :]]
    if len(starts) != len(array.dims):
        return None
    return [start for start, length in zip(starts, array.dims, strict=True) if length > 1]


def _number(instruction: Instruction) -> str:
    return instruction.argument if instruction.op == "constant" else instruction.name


def _moves(instruction: Instruction, written: Instruction) -> bool:
    return instruction.op in MOVING or _long(instruction.dims) != _long(written.dims)


def _long(dims: tuple[int, ...]) -> list[int]:
    return [length for length in dims if length > 1]
