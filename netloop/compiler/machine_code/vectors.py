"""Functions of vectors of float32, as LLVM's code and as numpy's.

Comparisons are such that NaN stays NaN, as in XLA.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from netloop.compiler.machine_code.code import FLOAT, FLOAT_BYTES, INT, INT32, FunctionCode, ir

TANH_ABOVE = (1.0, 0.1338268518447876, 0.003497455967590213, 2.0635796317947097e-05, 1.3384258146231787e-08)
TANH_BELOW = (1.0, 0.46716007590293884, 0.0258843544870615, 0.0003288514562882483, 7.790235372340248e-07)
"""The coefficients of tanh x = x P(x^2) / Q(x^2) up to ``TANH_END``, fitted by least squares with weights that even the
relative error out, 2.2e-8; with the rounding of float32 it is 5 units in the last place."""
TANH_END = 9.02
"""The number from which on tanh is 1 in float32."""


class Vectors(FunctionCode):
    """The code of one function with vectors of ``lanes`` numbers."""

    def __init__(self, module: Any, name: str, count: int, *, lanes: int) -> None:
        super().__init__(module, name, count)
        self.lanes = lanes

    @property
    def vector(self) -> Any:
        """The type of vectors."""
        return ir.VectorType(FLOAT, self.lanes)

    def constant(self, value: float) -> Any:
        """A vector of one number."""
        return ir.Constant(self.vector, [value] * self.lanes)

    def repeated(self, number: Any) -> Any:
        """A vector of a number that only the run knows."""
        undefined, places = ir.Constant(self.vector, ir.Undefined), ir.VectorType(INT32, self.lanes)
        first = self.builder.insert_element(undefined, number, ir.Constant(INT32, 0))
        return self.builder.shuffle_vector(first, undefined, ir.Constant(places, [0] * self.lanes))

    def load_repeated(self, address: Any, offset: Any = 0) -> Any:
        """A vector of a number in memory."""
        return self.repeated(self.load(address, offset, FLOAT, align=FLOAT_BYTES))

    def first_lanes(self, count: Any) -> Any:
        """The mask of as many numbers of a vector, all of them if there are fewer."""
        places = ir.VectorType(INT, self.lanes)
        limit = self.builder.insert_element(ir.Constant(places, ir.Undefined), count, ir.Constant(INT32, 0))
        none = ir.Constant(ir.VectorType(INT32, self.lanes), [0] * self.lanes)
        limits = self.builder.shuffle_vector(limit, ir.Constant(places, ir.Undefined), none)
        return self.builder.icmp_signed("<", ir.Constant(places, list(range(self.lanes))), limits)

    def load_vector(self, address: Any, offset: Any = 0, mask: Any = None) -> Any:
        """A vector in memory; with a mask, what it leaves out is 0 and is not read."""
        if mask is None:
            return self.load(address, offset, self.vector, align=FLOAT_BYTES)
        place, align = self.pointer(address, offset, self.vector), ir.Constant(INT32, FLOAT_BYTES)
        name = f"llvm.masked.load.v{self.lanes}f32.p0"
        return self.call_intrinsic(name, self.vector, place, align, mask, self.constant(0.0))

    def load_bfloat16(self, address: Any, offset: Any = 0) -> Any:
        """A vector of bfloat16 in memory: each is the upper half of a float32."""
        halves = self.load(address, offset, ir.VectorType(ir.IntType(16), self.lanes), align=2)
        words = ir.VectorType(INT32, self.lanes)
        shift = ir.Constant(words, [16] * self.lanes)
        return self.builder.bitcast(self.builder.shl(self.builder.zext(halves, words), shift), self.vector)

    def store_vector(self, value: Any, address: Any, offset: Any = 0, mask: Any = None) -> None:
        """Write a vector to memory, or those of its numbers that a mask names."""
        if mask is None:
            self.store(value, address, offset, align=FLOAT_BYTES)
            return
        place, align = self.pointer(address, offset, self.vector), ir.Constant(INT32, FLOAT_BYTES)
        self.call_intrinsic(f"llvm.masked.store.v{self.lanes}f32.p0", ir.VoidType(), value, place, align, mask)

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        """The sum a b + c, rounded once."""
        return self.call_intrinsic(f"llvm.fma.v{self.lanes}f32", self.vector, a, b, c)

    def polynomial(self, coefficients: Sequence[float], x: Any) -> Any:
        """A polynomial of x, whose coefficients begin with the constant one."""
        *rest, last = coefficients
        result = self.constant(last)
        for coefficient in reversed(rest):
            result = self.fma(result, x, self.constant(coefficient))
        return result

    def where(self, comparison: str, a: Any, b: Any, then: Any, otherwise: Any) -> Any:
        """One of two vectors by an ordered comparison, which does not hold for NaN."""
        return self.builder.select(self.builder.fcmp_ordered(comparison, a, b), then, otherwise)

    def limited(self, least: float, x: Any, most: float) -> Any:
        """The number max(least, min(most, x))."""
        low, high = self.constant(least), self.constant(most)
        below = self.where(">", x, high, high, x)
        return self.where("<", below, low, low, below)

    def tanh(self, x: Any) -> Any:
        """The hyperbolic tangent, which is x for small x, also denormal ones, and never beyond 1."""
        inside = self.limited(-TANH_END, x, TANH_END)
        square = self.builder.fmul(inside, inside)
        above = self.builder.fmul(inside, self.polynomial(TANH_ABOVE, square))
        return self.limited(-1.0, self.builder.fdiv(above, self.polynomial(TANH_BELOW, square)), 1.0)

    def sigmoid(self, x: Any) -> Any:
        """The number 1 / (1 + exp -x) by tanh: of large negative x the error is 6e-8, more than the value itself."""
        half = self.constant(0.5)
        return self.fma(self.tanh(self.builder.fmul(x, half)), half, half)

    def extreme(self, comparison: str, a: Any, b: Any) -> Any:
        """The larger or the smaller of two vectors, NaN where one of them is."""
        # the comparison gives b where it does not hold, and so where one is NaN
        is_nan = self.builder.fcmp_unordered("uno", a, a)
        return self.builder.select(is_nan, a, self.where(comparison, a, b, a, b))

    def truth(self, comparison: str, a: Any, b: Any) -> Any:
        """1 where an ordered comparison holds, and 0 elsewhere."""
        return self.where(comparison, a, b, self.constant(1.0), self.constant(0.0))

    def chosen(self, condition: Any, then: Any, otherwise: Any) -> Any:
        """One of two vectors, the second where a condition is 0."""
        return self.where("==", condition, self.constant(0.0), otherwise, then)

    def sum(self, first: Any, *others: Any) -> Any:
        """The sum of vectors."""
        for other in others:
            first = self.builder.fadd(first, other)
        return first

    def absolute(self, x: Any) -> Any:
        """The absolute value."""
        return self.call_intrinsic(f"llvm.fabs.v{self.lanes}f32", self.vector, x)


Function = Callable[..., Any]

FUNCTIONS: dict[str, Function] = {
    "sum": Vectors.sum,
    "sub": lambda code, a, b: code.builder.fsub(a, b),
    "prod": lambda code, a, b: code.builder.fmul(a, b),
    "div": lambda code, a, b: code.builder.fdiv(a, b),
    "max": lambda code, a, b: code.extreme(">", a, b),
    "min": lambda code, a, b: code.extreme("<", a, b),
    "neg": lambda code, x: code.builder.fneg(x),
    "abs": Vectors.absolute,
    "less": lambda code, a, b: code.truth("<", a, b),
    "greater": lambda code, a, b: code.truth(">", a, b),
    "equal": lambda code, a, b: code.truth("==", a, b),
    "select": Vectors.chosen,
    "sqrt": lambda code, x: code.call_intrinsic(f"llvm.sqrt.v{code.lanes}f32", code.vector, x),
    "recip": lambda code, x: code.builder.fdiv(code.constant(1.0), x),
    "tanh": Vectors.tanh,
    "sigmoid": Vectors.sigmoid,
    "relu": lambda code, x: code.where("<", x, code.constant(0.0), code.constant(0.0), x),
    "leaky_relu": lambda code, x, a: code.where(">=", x, code.constant(0.0), x, code.builder.fmul(code.constant(a), x)),
    "thresholded_relu": lambda code, x, a: code.where(">", x, code.constant(a), x, code.constant(0.0)),
    "clip": lambda code, x, low, high: code.limited(low, x, high),
    "hard_sigmoid": lambda code, x, a, b: code.limited(
        0.0, code.builder.fadd(code.builder.fmul(code.constant(a), x), code.constant(b)), 1.0
    ),
    "softsign": lambda code, x: code.builder.fdiv(x, code.builder.fadd(code.constant(1.0), code.absolute(x))),
    "scaled_tanh": lambda code, x, a, b: code.builder.fmul(
        code.constant(a), code.tanh(code.builder.fmul(code.constant(b), x))
    ),
}
"""The functions that compute values element by element, by the kinds of values."""
