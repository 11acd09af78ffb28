"""Element-wise layers: activation, unary, element-wise, select, cast, identity."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from netloop.model.graph.layer import Elementary, Operation, layer
from netloop.model.graph.layer_compat import PLAIN
from netloop.model.graph.network_base import NetworkBase
from netloop.model.graph.partial_values import selected
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.element_conversion import convert, lower_conversion
from netloop.model.layers.lax_forms import maximum, minimum, quotient, rounded, sigmoid
from netloop.model.manual_axes import while_loop
from netloop.values.diagnostics import require
from netloop.values.enums import ActivationType, DataType, ElementWiseOperation, LayerType, UnaryOperation
from netloop.values.string_arrays import type_name
from netloop.values.types import OWN, TINY, Array, MaskedArray, TensorType, broadcast, numpy_type, wide


def _erf(xp: Any, x: Any) -> Any:
    return jax.scipy.special.erf(x) if xp is jnp else _reference_erf(x)


def _reference_erf(x: Array) -> Array:
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(x)).astype(x.dtype)


def _gelu_tanh(xp: Any, x: Any) -> Any:
    return 0.5 * x * (1 + xp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


# fmt: off
ACTIVATIONS: dict[ActivationType, Any] = {
    ActivationType.RELU:             lambda xp, x, a, b: maximum(xp, x, 0),
    ActivationType.SIGMOID:          lambda xp, x, a, b: sigmoid(xp, x),
    ActivationType.TANH:             lambda xp, x, a, b: xp.tanh(x),
    ActivationType.LEAKY_RELU:       lambda xp, x, a, b: xp.where(x >= 0, x, a * x),
    ActivationType.ELU:              lambda xp, x, a, b: xp.where(x >= 0, x, a * xp.expm1(minimum(xp, x, 0))),
    ActivationType.SELU:             lambda xp, x, a, b: b * xp.where(x > 0, x, a * xp.expm1(minimum(xp, x, 0))),
    ActivationType.SOFTSIGN:         lambda xp, x, a, b: x / (1 + xp.abs(x)),
    ActivationType.SOFTPLUS:         lambda xp, x, a, b: a * xp.logaddexp(b * x, xp.zeros_like(x)),
    ActivationType.CLIP:             lambda xp, x, a, b: maximum(xp, a, minimum(xp, b, x)),
    ActivationType.HARD_SIGMOID:     lambda xp, x, a, b: maximum(xp, 0, minimum(xp, 1, a * x + b)),
    ActivationType.SCALED_TANH:      lambda xp, x, a, b: a * xp.tanh(b * x),
    ActivationType.THRESHOLDED_RELU: lambda xp, x, a, b: xp.where(x > a, x, 0),
    ActivationType.GELU_ERF:         lambda xp, x, a, b: 0.5 * x * (1 + _erf(xp, x * math.sqrt(0.5))),
    ActivationType.GELU_TANH:        lambda xp, x, a, b: _gelu_tanh(xp, x),
}
# fmt: on

SELU = {"alpha": 1.6732632423543772, "beta": 1.0507009873554805}
"""The default parameters of a SELU, which preserve mean and variance."""

DEFAULT_PARAMETERS = {ActivationType.SELU: SELU, ActivationType.SOFTPLUS: {"alpha": 1.0, "beta": 1.0}}
"""The default parameters that are not 0; TensorRT's own parsers of Caffe, UFF and ONNX rely on those of SOFTPLUS."""


@layer(LayerType.ACTIVATION, "Activation")
class IActivationLayer(Elementary):
    """Apply an activation function to every element.

    Floating-point, same type and shape in and out; RELU also takes integers.

    Attributes:
        type: the function.
        alpha, beta: its parameters, finite; 0 by default, except for SELU, and for SOFTPLUS, for
            which they are 1.

    ===================  ==========================================
    LEAKY_RELU           x if x >= 0, else alpha x
    ELU                  x if x >= 0, else alpha (exp x - 1)
    SELU                 beta x if x > 0, else beta alpha (exp x - 1)
    SOFTSIGN             x / (1 + abs x)
    SOFTPLUS             alpha log(exp(beta x) + 1)
    CLIP                 max(alpha, min(beta, x))
    HARD_SIGMOID         max(0, min(1, alpha x + beta))
    SCALED_TANH          alpha tanh(beta x)
    THRESHOLDED_RELU     x if x > alpha, else 0
    GELU_ERF, GELU_TANH  x Phi(x), Phi being the Gaussian CDF, exact or by its tanh approximation
    ===================  ==========================================
    """

    IS_ELEMENTWISE = True

    type: ActivationType
    alpha: float = 0.0
    beta: float = 0.0

    def infer(self, x: TensorType) -> TensorType:
        takes_integers = self.type is ActivationType.RELU
        require(
            x.is_float or (takes_integers and x.is_integer),
            f"{self.type.name} takes floating-point numbers{' and integers' if takes_integers else ''}, not {x}",
            fix="convert the input with add_cast",
        )
        for name in ("alpha", "beta"):
            require(
                math.isfinite(getattr(self, name)),
                f"{name} is {getattr(self, name)}, but must be finite",
                why="the function is not defined for it",
            )
        return x.without_value()

    def beyond_tensorrt(self, x: TensorType) -> str:
        return "" if x.is_float or x.is_index or x.dtype in OWN else f"takes {self.type.name} of {x.dtype}"

    def formula(self, xp: Any, x: Any) -> Any:
        return ACTIVATIONS[self.type](xp, x, self.alpha, self.beta).astype(x.dtype)

    def lower(self, *inputs: Any) -> Any:
        """Compute half types in float32 and round once: GELU far below 0 is a difference of nearly equal numbers, of
        which several roundings would leave few bits.
        """
        (x,) = inputs
        return self.formula(jnp, x if self.type is ActivationType.RELU else wide(x)).astype(x.dtype)


# fmt: off
UNARIES: dict[UnaryOperation, Any] = {
    UnaryOperation.EXP:   lambda xp, x: xp.exp(x),
    UnaryOperation.LOG:   lambda xp, x: xp.log(x),
    UnaryOperation.SQRT:  lambda xp, x: xp.sqrt(x),
    UnaryOperation.RECIP: lambda xp, x: 1 / x,
    UnaryOperation.ABS:   lambda xp, x: xp.abs(x),
    UnaryOperation.NEG:   lambda xp, x: -x,
    UnaryOperation.SIN:   lambda xp, x: xp.sin(x),
    UnaryOperation.COS:   lambda xp, x: xp.cos(x),
    UnaryOperation.TAN:   lambda xp, x: xp.tan(x),
    UnaryOperation.SINH:  lambda xp, x: xp.sinh(x),
    UnaryOperation.COSH:  lambda xp, x: xp.cosh(x),
    UnaryOperation.ASIN:  lambda xp, x: xp.arcsin(x),
    UnaryOperation.ACOS:  lambda xp, x: xp.arccos(x),
    UnaryOperation.ATAN:  lambda xp, x: xp.arctan(x),
    UnaryOperation.ASINH: lambda xp, x: xp.arcsinh(x),
    UnaryOperation.ACOSH: lambda xp, x: xp.arccosh(x),
    UnaryOperation.ATANH: lambda xp, x: xp.arctanh(x),
    UnaryOperation.CEIL:  lambda xp, x: xp.ceil(x),
    UnaryOperation.FLOOR: lambda xp, x: xp.floor(x),
    UnaryOperation.ERF:   lambda xp, x: _erf(xp, x),
    UnaryOperation.NOT:   lambda xp, x: xp.invert(x),
    UnaryOperation.SIGN:  lambda xp, x: xp.sign(x),
    UnaryOperation.ROUND: lambda xp, x: rounded(xp, x),
    UnaryOperation.ISINF: lambda xp, x: xp.isinf(x),
    UnaryOperation.ISNAN: lambda xp, x: xp.isnan(x),
}
# fmt: on
UNARIES_ON_INTEGERS = {UnaryOperation.ABS, UnaryOperation.NEG, UnaryOperation.SIGN}
UNARIES_TO_BOOL = {UnaryOperation.NOT, UnaryOperation.ISINF, UnaryOperation.ISNAN}


@layer(LayerType.UNARY, "Unary")
class IUnaryLayer(Elementary):
    """Apply a function of one argument to every element.

    Floating-point, same type and shape in and out. ABS, NEG and SIGN also take integers; NOT takes bool, or integers,
    of which it inverts the bits; ISINF and ISNAN return bool; ROUND rounds half to even.

    Attributes:
        op: the function.
    """

    IS_ELEMENTWISE = True

    op: UnaryOperation

    def infer(self, x: TensorType) -> TensorType:
        if self.op is UnaryOperation.NOT:
            require(
                x.is_bool or x.is_integer,
                f"NOT takes bool or integers, not {x}",
                fix="compare first, with add_elementwise",
            )
            return x.without_value()
        takes_integers = self.op in UNARIES_ON_INTEGERS
        require(
            x.is_float or (takes_integers and x.is_integer),
            f"{self.op.name} takes floating-point numbers{' and integers' if takes_integers else ''}, not {x}",
            fix="convert the input with add_cast",
        )
        return x.with_dtype(np.bool_) if self.op in UNARIES_TO_BOOL else x.without_value()

    def beyond_tensorrt(self, x: TensorType) -> str:
        if self.op is UnaryOperation.NOT:
            return "" if x.is_bool or x.dtype in OWN else f"takes the NOT of {x.dtype}"
        return "" if x.is_float or x.is_index or x.dtype in OWN else f"takes the {self.op.name} of {x.dtype}"

    def formula(self, xp: Any, x: Any) -> Any:
        return UNARIES[self.op](xp, x)


def _divide(xp: Any, a: Any, b: Any) -> Any:
    if not xp.issubdtype(a.dtype, xp.integer):
        return quotient(xp, a, b)
    b = _divisor(xp, b)
    floor = a // b
    return floor + ((floor * b != a) & ((a < 0) != (b < 0))).astype(a.dtype)


def _exponent(b: Any) -> Any:
    """The base-2 logarithm of compile-time constant integers, if they are powers of 2."""
    is_power = isinstance(b, np.ndarray) and b.size > 0 and bool(np.all((b > 0) & (b & (b - 1) == 0)))
    return np.asarray(np.log2(b.astype(np.float64))).astype(b.dtype) if is_power else None


def _equal(xp: Any, a: Any, b: Any) -> Any:
    if a.dtype in TINY:  # XLA never finds an int2 equal to a negative constant
        a, b = a.astype(np.int8), b.astype(np.int8)
    return a == b


def _floor_divide(xp: Any, a: Any, b: Any) -> Any:
    if not xp.issubdtype(a.dtype, xp.integer):
        return xp.floor(quotient(xp, wide(a), wide(b))).astype(a.dtype)
    b = _divisor(xp, b)
    shift = _exponent(b) if xp is jnp else None
    return a // b if shift is None else jnp.right_shift(a, shift)


def _modulo(xp: Any, a: Any, b: Any) -> Any:
    return xp.mod(a, _divisor(xp, b) if xp.issubdtype(a.dtype, xp.integer) else b)


def _remainder(xp: Any, a: Any, b: Any) -> Any:
    return xp.fmod(a, _divisor(xp, b) if xp.issubdtype(a.dtype, xp.integer) else b)


def _power(xp: Any, a: Any, b: Any) -> Any:
    if not xp.issubdtype(a.dtype, xp.integer):
        return xp.power(a, b)
    down = b < 0
    _require_no_zero(xp, xp.where(down, a, 1))
    exponent = xp.where(down, b & 1, b)
    power = np.power(a, exponent) if xp is np else _lower_power(a, exponent)
    return xp.where(down & (abs(a) != 1), 0, power).astype(a.dtype)


def _lower_power(a: Any, b: Any) -> jax.Array:
    """Repeated squaring, because ``jnp.power`` uses only the last six bits of the exponent."""

    def square(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        power, base, left = state
        return jnp.where(left & 1, power * base, power), base * base, left >> 1

    base, left = jnp.broadcast_arrays(a, b)
    return while_loop(lambda state: jnp.any(state[2] != 0), square, (jnp.ones_like(base), base, left))[0]


def _divisor(xp: Any, b: Any) -> Any:
    """The divisor of integers, with 1 instead of 0 in a compiled network."""
    # StableHLO divides constants when it folds them, and a division by 0 ends the process
    _require_no_zero(xp, b)
    return b if xp is np else (np if isinstance(b, np.ndarray) else jnp).where(b == 0, b.dtype.type(1), b)


def _require_no_zero(xp: Any, divisor: Any) -> None:
    if xp is np:
        require(bool(np.all(divisor != 0)), "an integer is divided by zero", why="the quotient is undefined")


# fmt: off
ELEMENTWISE: dict[ElementWiseOperation, Any] = {
    ElementWiseOperation.SUM:         lambda xp, a, b: a + b,
    ElementWiseOperation.PROD:        lambda xp, a, b: a * b,
    ElementWiseOperation.MAX:         maximum,
    ElementWiseOperation.MIN:         minimum,
    ElementWiseOperation.SUB:         lambda xp, a, b: a - b,
    ElementWiseOperation.DIV:         _divide,
    ElementWiseOperation.POW:         _power,
    ElementWiseOperation.FLOOR_DIV:   _floor_divide,
    ElementWiseOperation.AND:         lambda xp, a, b: a & b,
    ElementWiseOperation.OR:          lambda xp, a, b: a | b,
    ElementWiseOperation.XOR:         lambda xp, a, b: a ^ b,
    ElementWiseOperation.EQUAL:       _equal,
    ElementWiseOperation.GREATER:     lambda xp, a, b: a > b,
    ElementWiseOperation.LESS:        lambda xp, a, b: a < b,
    ElementWiseOperation.MOD:         _modulo,
    ElementWiseOperation.FMOD:        _remainder,
    ElementWiseOperation.SHIFT_LEFT:  lambda xp, a, b: xp.left_shift(a, b),
    ElementWiseOperation.SHIFT_RIGHT: lambda xp, a, b: xp.right_shift(a, b),
}
# fmt: on
MADE_FLOAT64 = "convert one input with add_cast, or make the array of np.float32: numpy's own default is float64"

BITS = {ElementWiseOperation.AND, ElementWiseOperation.OR, ElementWiseOperation.XOR}
SHIFTS = {ElementWiseOperation.SHIFT_LEFT, ElementWiseOperation.SHIFT_RIGHT}
OF_TENSORRT = {
    ElementWiseOperation.MOD: "compute a - b * FLOOR_DIV(a, b)",
    ElementWiseOperation.FMOD: "compute a - b * trunc(a / b), with trunc(x) = sign(x) floor(abs(x))",
    ElementWiseOperation.SHIFT_LEFT: "multiply by the power of 2",
    ElementWiseOperation.SHIFT_RIGHT: "take FLOOR_DIV by the power of 2",
}
"""The advice for operations that TensorRT lacks."""
COMPARISONS = {ElementWiseOperation.EQUAL, ElementWiseOperation.GREATER, ElementWiseOperation.LESS}


@layer(LayerType.ELEMENTWISE, "ElementWise")
class IElementWiseLayer(Elementary):
    """Apply a binary operation element by element; axes of length 1 are broadcast.

    Both inputs have the same element type and rank. AND, OR and XOR take bool, or integers bitwise; SHIFT_LEFT and
    SHIFT_RIGHT take integers; EQUAL takes any type, strings too; the others take floating-point numbers and integers,
    which wrap. EQUAL, GREATER and LESS return bool.

    On integers DIV rounds towards zero and FLOOR_DIV towards minus infinity; a division by zero is an error in the
    reference, and an undefined number in a compiled network. POW with a negative exponent is 1 divided by the power,
    rounded towards zero. A right shift is arithmetic; a shift by the bit width or more, or by a negative number, leaves
    only the sign, or 0. TensorRT has no MOD, FMOD and shifts.

    Attributes:
        op: the operation.
    """

    IS_ELEMENTWISE = True
    REQUIRED_INPUTS = 2
    TAKES_STRINGS = True

    op: ElementWiseOperation

    def infer(self, a: TensorType, b: TensorType) -> TensorType:
        require(
            a.dtype == b.dtype,
            f"{self.op.name} takes two inputs of the same element type, not {a} and {b}",
            why="TensorRT's networks are strongly typed: nothing is converted silently",
            fix=MADE_FLOAT64 if np.float64 in (a.dtype, b.dtype) else "convert one input with add_cast",
        )
        wanted, takes = self._takes(a)
        require(
            takes,
            f"{self.op.name} takes {wanted}, not {type_name(a.dtype)}",
            why="the operation is defined for these types only",
            fix="convert the inputs with add_cast",
        )
        shape = broadcast(a.shape, b.shape)
        return TensorType(np.dtype(np.bool_) if self.op in COMPARISONS else a.dtype, shape)

    def _takes(self, x: TensorType) -> tuple[str, bool]:
        """The accepted element types in words, and whether ``x`` is one of them."""
        if self.op in BITS:
            return "bool or integers", x.is_bool or x.is_integer
        if self.op in SHIFTS:
            return "integers", x.is_integer
        return "floating-point numbers and integers", x.is_number or self.op is ElementWiseOperation.EQUAL

    def beyond_tensorrt(self, a: TensorType, b: TensorType) -> str:
        if int(self.op) >= int(ElementWiseOperation.MOD):
            return f"computes {self.op.name}, which TensorRT does not have"
        if self.op in BITS:
            takes = a.is_bool
        elif self.op is ElementWiseOperation.POW:
            takes = a.is_float
        else:
            takes = a.dtype != np.uint8 or self.op is ElementWiseOperation.EQUAL
        return "" if takes or a.dtype in OWN else f"computes {self.op.name} on {a.dtype}"

    def within_tensorrt(self) -> str:
        return OF_TENSORRT.get(self.op, "convert the inputs with add_cast to a type that TensorRT takes")

    def formula(self, xp: Any, a: Any, b: Any) -> Any:
        return ELEMENTWISE[self.op](xp, a, b)


@layer(LayerType.SELECT, "Select")
class ISelectLayer(Elementary):
    """Select ``then_input`` where the condition is true and ``else_input`` elsewhere; axes of length 1 are broadcast.

    The condition is bool, the other two have the same element type, and all three the same rank.
    """

    IS_ELEMENTWISE = True
    REQUIRED_INPUTS = 3
    TAKES_STRINGS = True

    def infer(self, condition: TensorType, then_input: TensorType, else_input: TensorType) -> TensorType:
        require(condition.is_bool, f"the condition is bool, not {condition}", fix="compare first, with add_elementwise")
        require(
            then_input.dtype == else_input.dtype,
            f"the two values must have the same element type, not {then_input} and {else_input}",
            fix="convert one of them with add_cast",
        )
        return then_input.with_shape(broadcast(condition.shape, then_input.shape, else_input.shape))

    def partial(self, *inputs: MaskedArray | None) -> MaskedArray | None:
        return selected(self.evaluate, inputs)

    def formula(self, xp: Any, condition: Any, then_input: Any, else_input: Any) -> Any:
        return xp.where(condition, then_input, else_input)


@layer(LayerType.CAST, "Cast")
class ICastLayer(Operation):
    """Convert every element to another type; all pairs of types are supported.

    To bool: whether it is not 0. To floating-point: the nearest number, ties to even; beyond the range, infinity, or
    NaN in a type without infinities, or the largest number in FP4, which has neither. To saturate, clamp first with
    the activation CLIP. Floating-point to integer: rounded towards zero, saturated, and 0 for NaN; to uint8, numbers
    below 0 give 0 and numbers above 255 wrap. Integer to integer: the lowest bits, so numbers wrap.

    To string: eight significant digits of a floating-point number, INF or NaN; bools are 0 and 1. From string: the
    number that it spells, such as 3.14, 1e-5, -INF or NaN; an integer without the digits after the point, so 100.5
    gives 100; anything else is an error. Source: ONNX's Cast.

    Attributes:
        to_type: the new element type.
    """

    IS_ELEMENTWISE = True
    NUMPY_IS_FAST = True
    TAKES_STRINGS = True

    to_type: DataType

    def infer(self, x: TensorType) -> TensorType:
        return x.with_dtype(numpy_type(self.to_type))

    def evaluate(self, x: Array) -> Array:
        return convert(x, numpy_type(self.to_type))

    def lower(self, x: Any) -> Any:
        return lower_conversion(x, numpy_type(self.to_type))


@layer(LayerType.IDENTITY, "Identity")
class IIdentityLayer(Operation):
    """Return the input unchanged.

    Scripts for TensorRT 10 use it for conversions, by ``set_output_type``; it then behaves as ``ICastLayer``.

    Attributes:
        to_type: the element type of the output; None for that of the input.
    """

    IS_ELEMENTWISE = True
    OUTPUT_TYPES = PLAIN
    TENSORS_ONLY = False
    NUMPY_IS_FAST = True
    TAKES_STRINGS = True

    to_type: DataType | None = None

    def infer(self, x: TensorType) -> TensorType:
        if self.to_type is None:
            return x.without_value()
        require(
            x.is_tensor,
            f"the input is {x}, and only tensors can be converted to {self.to_type.name}",
            why="other values have no single array of elements",
        )
        return x.with_dtype(numpy_type(self.to_type))

    def evaluate(self, x: Array) -> Array:
        return x if self.to_type is None else convert(x, numpy_type(self.to_type))

    def lower(self, x: Any) -> Any:
        return jnp.asarray(x) if self.to_type is None else lower_conversion(x, numpy_type(self.to_type))

    def beyond_tensorrt(self, x: TensorType) -> str:
        return f"converts to {self.to_type.name}, which TensorRT 11 supports only in add_cast" if self.to_type else ""


POINTWISE = IActivationLayer, ICastLayer, IElementWiseLayer, IIdentityLayer, ISelectLayer, IUnaryLayer
"""The element-wise layer kinds."""


class PointwiseMethods(NetworkBase):
    """The ``add_`` methods of this family."""

    FAMILY = "element by element"

    def add_activation(self, input: ITensor, type: ActivationType) -> IActivationLayer:
        """Add an activation function.

        Floating-point, same type and shape in and out; RELU also takes integers.

        Args:
            input: the input.
            type: the function. alpha, beta: its parameters, finite; 0 by default, except for SELU, and for SOFTPLUS,
                for which they are 1.
        """
        return self.add(IActivationLayer(type=type, **DEFAULT_PARAMETERS.get(type, {})), input=input)

    def add_unary(self, input: ITensor, op: UnaryOperation) -> IUnaryLayer:
        """Add a unary operation.

        Floating-point, same type and shape in and out. ABS, NEG and SIGN also take integers; NOT takes bool, or
        integers, of which it inverts the bits; ISINF and ISNAN return bool; ROUND rounds half to even.

        Args:
            input: the input.
            op: the function.
        """
        return self.add(IUnaryLayer(op=op), input=input)

    def add_elementwise(self, input1: ITensor, input2: ITensor, op: ElementWiseOperation) -> IElementWiseLayer:
        """Add a binary element-wise operation.

        Both inputs have the same element type and rank. AND, OR and XOR take bool, or integers bitwise; SHIFT_LEFT
        and SHIFT_RIGHT take integers; EQUAL takes any type, strings too; the others take floating-point numbers and
        integers, which wrap. EQUAL, GREATER and LESS return bool.

        On integers DIV rounds towards zero and FLOOR_DIV towards minus infinity; a division by zero is an error in
        the reference, and an undefined number in a compiled network. POW with a negative exponent is 1 divided by the
        power, rounded towards zero. A right shift is arithmetic; a shift by the bit width or more, or by a negative
        number, leaves only the sign, or 0. TensorRT has no MOD, FMOD and shifts.

        Args:
            input1: input 0.
            input2: input 1.
            op: the operation.
        """
        return self.add(IElementWiseLayer(op=op), input1=input1, input2=input2)

    def add_select(self, condition: ITensor, then_input: ITensor, else_input: ITensor) -> ISelectLayer:
        """Add a selection of ``then_input`` where the condition is true, and ``else_input`` elsewhere.

        The condition is bool, the other two have the same element type, and all three the same rank.

        Args:
            condition: input 0.
            then_input: input 1.
            else_input: input 2.
        """
        return self.add(ISelectLayer(), condition=condition, then_input=then_input, else_input=else_input)

    def add_cast(self, input: ITensor, to_type: DataType) -> ICastLayer:
        """Add a conversion to another element type.

        To bool: whether it is not 0. To floating-point: the nearest number, ties to even; beyond the range,
        infinity, or NaN in a type without infinities, or the largest number in FP4, which has neither. To saturate,
        clamp first with the activation CLIP. Floating-point to integer: rounded towards zero, saturated, and 0 for NaN;
        to uint8, numbers below 0 give 0 and numbers above 255 wrap. Integer to integer: the lowest bits, so numbers
        wrap.

        To string: eight significant digits of a floating-point number, INF or NaN; bools are 0 and 1. From string:
        the number that it spells, such as 3.14, 1e-5, -INF or NaN; an integer without the digits after the point, so
        100.5 gives 100; anything else is an error. Source: ONNX's Cast.

        Args:
            input: the input.
            to_type: the new element type.
        """
        return self.add(ICastLayer(to_type=to_type), input=input)

    def add_identity(self, input: ITensor) -> IIdentityLayer:
        """Add an identity.

        Scripts for TensorRT 10 use it for conversions, by ``set_output_type``; it then behaves as ``ICastLayer``.

        Args:
            input: the input.

        Further attributes of the layer, which have defaults: ``to_type``.
        """
        return self.add(IIdentityLayer(), input=input)
