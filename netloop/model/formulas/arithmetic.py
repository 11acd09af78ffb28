"""Element-wise formulas: arithmetic, comparisons, logic, selection and functions."""

from netloop.model.formulas.base import Operand
from netloop.model.formulas.rearrange import Arranging
from netloop.model.graph.tensor import ITensor
from netloop.values.enums import ActivationType, ElementWiseOperation, UnaryOperation


class Arithmetic(Arranging):
    """Formulas that compute each element on its own."""

    def elementwise(self, op: ElementWiseOperation, a: Operand, b: Operand) -> ITensor:
        """The result of an element-wise operation."""
        a, b = self.aligned(*self.tensors(a, b))
        return self.output(self.network.add_elementwise(a, b, op))

    def add(self, a: Operand, b: Operand) -> ITensor:
        """The sum a + b."""
        return self.elementwise(ElementWiseOperation.SUM, a, b)

    def sub(self, a: Operand, b: Operand) -> ITensor:
        """The difference a - b."""
        return self.elementwise(ElementWiseOperation.SUB, a, b)

    def mul(self, a: Operand, b: Operand) -> ITensor:
        """The product a b."""
        return self.elementwise(ElementWiseOperation.PROD, a, b)

    def div(self, a: Operand, b: Operand) -> ITensor:
        """The quotient a / b; of integers, towards zero."""
        return self.elementwise(ElementWiseOperation.DIV, a, b)

    def floor_div(self, a: Operand, b: Operand) -> ITensor:
        """The quotient a / b, towards minus infinity."""
        return self.elementwise(ElementWiseOperation.FLOOR_DIV, a, b)

    def modulo(self, a: Operand, b: Operand) -> ITensor:
        """The remainder of a / b, with the sign of b."""
        return self.elementwise(ElementWiseOperation.MOD, a, b)

    def power(self, a: Operand, b: Operand) -> ITensor:
        """The power a to the b."""
        return self.elementwise(ElementWiseOperation.POW, a, b)

    def maximum(self, a: Operand, b: Operand) -> ITensor:
        """The larger of a and b."""
        return self.elementwise(ElementWiseOperation.MAX, a, b)

    def minimum(self, a: Operand, b: Operand) -> ITensor:
        """The smaller of a and b."""
        return self.elementwise(ElementWiseOperation.MIN, a, b)

    # ------------------------------------------------------------------ truth

    def equal(self, a: Operand, b: Operand) -> ITensor:
        """Whether a == b."""
        return self.elementwise(ElementWiseOperation.EQUAL, a, b)

    def less(self, a: Operand, b: Operand) -> ITensor:
        """Whether a < b."""
        return self.elementwise(ElementWiseOperation.LESS, a, b)

    def greater(self, a: Operand, b: Operand) -> ITensor:
        """Whether a > b."""
        return self.elementwise(ElementWiseOperation.GREATER, a, b)

    def less_equal(self, a: Operand, b: Operand) -> ITensor:
        """Whether a <= b; false for NaN."""
        return self.logical_or(self.less(a, b), self.equal(a, b))

    def greater_equal(self, a: Operand, b: Operand) -> ITensor:
        """Whether a >= b; false for NaN."""
        return self.logical_or(self.greater(a, b), self.equal(a, b))

    def logical_and(self, a: Operand, b: Operand) -> ITensor:
        """Whether a and b are true."""
        return self.elementwise(ElementWiseOperation.AND, a, b)

    def logical_or(self, a: Operand, b: Operand) -> ITensor:
        """Whether a or b is true."""
        return self.elementwise(ElementWiseOperation.OR, a, b)

    def logical_not(self, x: ITensor) -> ITensor:
        """Whether x is false."""
        return self.unary(UnaryOperation.NOT, x)

    def where(self, condition: Operand, a: Operand, b: Operand) -> ITensor:
        """``a`` where the condition is true, ``b`` elsewhere."""
        condition, a, b = self.aligned(self.tensor(condition), *self.tensors(a, b))
        return self.output(self.network.add_select(condition, a, b))

    # ------------------------------------------------------------------ functions

    def unary(self, op: UnaryOperation, x: ITensor) -> ITensor:
        """A function of every element."""
        return self.output(self.network.add_unary(x, op))

    def activation(
        self, type: ActivationType, x: ITensor, alpha: float | None = None, beta: float | None = None
    ) -> ITensor:
        """An activation function of every element."""
        layer = self.network.add_activation(x, type)
        if alpha is not None:
            layer.alpha = alpha
        if beta is not None:
            layer.beta = beta
        return self.output(layer)

    def clip(self, x: Operand, low: Operand, high: Operand) -> ITensor:
        """``x`` limited to the range from ``low`` to ``high``."""
        return self.minimum(self.maximum(x, low), high)

    def is_infinite(self, x: ITensor, negative: bool = True, positive: bool = True) -> ITensor:
        """Whether x is infinite, of the signs that count."""
        result = self.unary(UnaryOperation.ISINF, x)
        if not negative:
            result = self.logical_and(result, self.greater(x, 0))
        if not positive:
            result = self.logical_and(result, self.less(x, 0))
        return result

    def parametric_relu(self, x: ITensor, slope: ITensor) -> ITensor:
        """``x``, with negative numbers multiplied by a slope."""
        if x.type.is_float:  # add_parametric_relu takes no integers
            return self.output(self.network.add_parametric_relu(*self.aligned(x, slope)))
        return self.where(self.less(x, 0), self.mul(x, slope), x)
