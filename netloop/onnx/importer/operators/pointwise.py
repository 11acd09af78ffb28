"""Element by element."""

from functools import reduce

from netloop.enums import ElementWiseOperation, UnaryOperation
from netloop.graph.tensor import ITensor
from netloop.onnx.importer.call import Call
from netloop.onnx.importer.operator_table import operator
from netloop.types import normal_axis

# fmt: off
BINARY = {
    "Add": ElementWiseOperation.SUM,
    "Sub": ElementWiseOperation.SUB,
    "Mul": ElementWiseOperation.PROD,
    "Div": ElementWiseOperation.DIV,
    "Equal": ElementWiseOperation.EQUAL,
    "Less": ElementWiseOperation.LESS,
    "Greater": ElementWiseOperation.GREATER,
    "And": ElementWiseOperation.AND,
    "Or":  ElementWiseOperation.OR,
    "Xor": ElementWiseOperation.XOR,
}
UNARY = {
    "Abs":        UnaryOperation.ABS,
    "Acos":       UnaryOperation.ACOS,
    "Acosh":      UnaryOperation.ACOSH,
    "Asin":       UnaryOperation.ASIN,
    "Asinh":      UnaryOperation.ASINH,
    "Atan":       UnaryOperation.ATAN,
    "Atanh":      UnaryOperation.ATANH,
    "Ceil":       UnaryOperation.CEIL,
    "Cos":        UnaryOperation.COS,
    "Cosh":       UnaryOperation.COSH,
    "Erf":        UnaryOperation.ERF,
    "Exp":        UnaryOperation.EXP,
    "Floor":      UnaryOperation.FLOOR,
    "IsNaN":      UnaryOperation.ISNAN,
    "Log":        UnaryOperation.LOG,
    "Neg":        UnaryOperation.NEG,
    "Not":        UnaryOperation.NOT,
    "Reciprocal": UnaryOperation.RECIP,
    "Round":      UnaryOperation.ROUND,
    "Sign":       UnaryOperation.SIGN,
    "Sin":        UnaryOperation.SIN,
    "Sinh":       UnaryOperation.SINH,
    "Sqrt":       UnaryOperation.SQRT,
    "Tan":        UnaryOperation.TAN,
}
# fmt: on


@operator(*BINARY, since=1)
def binary_by_axis(call: Call, a: ITensor, b: ITensor) -> ITensor:
    """Two tensors combined; the axes of the second go with those of the first from an axis on."""
    return call.make.elementwise(BINARY[call.node.op], a, along_axis(call, a, b))


def along_axis(call: Call, a: ITensor, b: ITensor) -> ITensor:
    """``b`` with axes of length 1 behind its own, so that these go with those of ``a`` from the attribute axis on."""
    axis = call.attribute("axis")
    if not call.attribute("broadcast") or axis is None:
        return b
    behind = a.type.rank - normal_axis(axis, a.type.rank) - b.type.rank
    return call.make.expand_dims(b, range(b.type.rank, b.type.rank + max(0, behind)))


@operator(*BINARY, since=7)
def binary(call: Call, a: ITensor, b: ITensor) -> ITensor:
    """Two tensors combined."""
    return call.make.elementwise(BINARY[call.node.op], a, b)


@operator("LessOrEqual", since=12)
def less_or_equal(call: Call, a: ITensor, b: ITensor) -> ITensor:
    """Whether a <= b."""
    return call.make.less_equal(a, b)


@operator("GreaterOrEqual", since=12)
def greater_or_equal(call: Call, a: ITensor, b: ITensor) -> ITensor:
    """Whether a >= b."""
    return call.make.greater_equal(a, b)


@operator("Sum")
def total(call: Call, *terms: ITensor) -> ITensor:
    """The sum of tensors."""
    return reduce(call.make.add, terms)


@operator("Mean")
def mean(call: Call, *terms: ITensor) -> ITensor:
    """The mean of tensors."""
    return call.make.div(reduce(call.make.add, terms), len(terms))


@operator("Max")
def largest(call: Call, *terms: ITensor) -> ITensor:
    """The largest of tensors."""
    return reduce(call.make.maximum, terms)


@operator("Min")
def smallest(call: Call, *terms: ITensor) -> ITensor:
    """The smallest of tensors."""
    return reduce(call.make.minimum, terms)


@operator("Where", since=9)
def where(call: Call, condition: ITensor, a: ITensor, b: ITensor) -> ITensor:
    """``a`` where the condition is true, ``b`` elsewhere."""
    return call.make.where(condition, a, b)


@operator(*UNARY)
def unary(call: Call, x: ITensor) -> ITensor:
    """A function of each element."""
    return call.make.unary(UNARY[call.node.op], x)


@operator("Identity")
def identity(call: Call, x: ITensor) -> ITensor:
    """The tensor itself."""
    return x
