"""A compiled program of XLA, read from its text."""

import re
from collections.abc import Iterator
from typing import NamedTuple

COMPUTATION = re.compile(r"^%([\w.-]+) \([^\n]*\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
INSTRUCTION = re.compile(
    r"^\s*(?:ROOT )?%(?P<name>[\w.-]+) = (?P<dtype>\w+)\[(?P<dims>[\d,]*)\]\S* (?P<op>[\w-]+)"
    r"\((?P<operands>[^)]*)\)(?P<rest>.*)$",
    re.MULTILINE,
)
OPERAND = re.compile(r"%([\w.-]+)")

RESHAPES = {"reshape", "bitcast"}
"""Operations that keep the numbers and their order."""


class Instruction(NamedTuple):
    """An instruction: its result, the names of its operands, and the text after the name of the operation."""

    name: str
    dtype: str
    dims: tuple[int, ...]
    op: str
    operands: list[str]
    rest: str

    @property
    def argument(self) -> str:
        """The text in parentheses: the number of a parameter, or the value of a constant."""
        return self.rest.partition(")")[0]


def computations(text: str) -> dict[str, str]:
    """The text of each computation of a program, by name."""
    return dict(COMPUTATION.findall(text))


def instructions(computation: str) -> dict[str, Instruction]:
    """The instructions of a computation that have one result, by name and in order; the last is the root."""
    return {instruction.name: instruction for instruction in _instructions(computation)}


def operand_names(text: str) -> list[str]:
    """The names of instructions that a text has."""
    return OPERAND.findall(text)


def numbers(text: str) -> list[int]:
    """The numbers of a list such as ``1,2``."""
    return [int(number) for number in text.split(",") if number]


def _instructions(computation: str) -> Iterator[Instruction]:
    for match in INSTRUCTION.finditer(computation):
        dims = tuple(numbers(match["dims"]))
        rest = f"{match['operands']}){match['rest']}"
        yield Instruction(match["name"], match["dtype"], dims, match["op"], operand_names(match["operands"]), rest)
