"""Python's operators on tensors and layers, which a network does not have: each says which layer computes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

BINARY = {
    "add": ("+", "SUM"),
    "sub": ("-", "SUB"),
    "mul": ("*", "PROD"),
    "truediv": ("/", "DIV"),
    "floordiv": ("//", "FLOOR_DIV"),
    "mod": ("%", "MOD"),
    "pow": ("**", "POW"),
    "and": ("&", "AND"),
    "or": ("|", "OR"),
    "xor": ("^", "XOR"),
}
"""Python's name of each operator, its sign, and the member of ElementWiseOperation."""
COMPARISONS = {
    "lt": ("<", "LESS", ""),
    "gt": (">", "GREATER", ""),
    "le": ("<=", "GREATER", ", and its opposite, network.add_unary(x, UnaryOperation.NOT)"),
    "ge": (">=", "LESS", ", and its opposite, network.add_unary(x, UnaryOperation.NOT)"),
}
BRANCH = "; network.add_if_conditional() makes branches"
UNARY = {"neg": ("-", "NEG"), "abs": ("abs", "ABS"), "invert": ("~", "NOT")}
NO_VALUE = "it has no value while a network is built: mark it as an output, and call the engine"
OTHERS = {
    "__matmul__": "@: write network.add_matrix_multiply(a, MatrixOperation.NONE, b, MatrixOperation.NONE)",
    "__rmatmul__": "@: write network.add_matrix_multiply(a, MatrixOperation.NONE, b, MatrixOperation.NONE)",
    # also what a for loop calls; with __iter__ a tensor would pass for a list of tensors
    "__getitem__": "elements in Python: write network.add_slice(...) or network.add_gather(x, indices, axis); "
    "loop.add_iterator(x) reads a slice in each iteration of a loop",
    "__contains__": "in: write network.add_elementwise(a, b, ElementWiseOperation.EQUAL)",
    "__len__": "len(): its length is x.shape[0], or that of network.add_shape(x) in a run",
    "__float__": f"float(): {NO_VALUE}",
    "__int__": f"int(): {NO_VALUE}",
    "__array__": f"conversion to an array: {NO_VALUE}",
}


class PythonOperators:
    """The operators; each raises a TypeError.

    Tensors are true, as they always were, and equal only to themselves: they are keys of dictionaries.
    """

    OPERAND = "a tensor"
    """The operand in words, with what to use instead where it is none."""

    __array_ufunc__ = None
    """numpy leaves the operators of arrays and tensors to the tensors."""

    def __bool__(self) -> bool:
        return True


def _refusal(what: str) -> Callable[..., NoReturn]:
    def refuse(self: PythonOperators, *others: Any, **named: Any) -> NoReturn:
        raise TypeError(f"{self.OPERAND} has no {what}")

    return refuse


def _refusals() -> dict[str, str]:
    texts = dict(OTHERS)
    for name, (sign, operation) in BINARY.items():
        text = f"{sign}: write network.add_elementwise(a, b, ElementWiseOperation.{operation})"
        texts |= {f"__{name}__": text, f"__r{name}__": text}
    for name, (sign, operation, opposite) in COMPARISONS.items():
        comparison = f"network.add_elementwise(a, b, ElementWiseOperation.{operation})"
        texts[f"__{name}__"] = f"{sign}: write {comparison}{opposite}{BRANCH}"
    for name, (sign, operation) in UNARY.items():
        texts[f"__{name}__"] = f"{sign}: write network.add_unary(x, UnaryOperation.{operation})"
    return texts


for _name, _text in _refusals().items():
    setattr(PythonOperators, _name, _refusal(_text))
