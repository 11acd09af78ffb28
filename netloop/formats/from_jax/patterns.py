"""Layers for functions of JAX that are several equations: softmax, softplus, and operations without effect."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from netloop.formats.from_jax.facts import Facts
from netloop.formats.from_jax.liveness import every_equation
from netloop.model.formulas import FormulaBuilder
from netloop.model.formulas.reduce import bitmask
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.matrix import IEinsumLayer
from netloop.model.layers.pointwise import IElementWiseLayer, IUnaryLayer
from netloop.model.layers.rearrange import IShuffleLayer, IUnsqueezeLayer
from netloop.model.layers.reduce import IReduceLayer
from netloop.values.enums import ActivationType, ElementWiseOperation, ReduceOperation, UnaryOperation
from netloop.values.types import axes_of


def softmax(make: FormulaBuilder, terms: ITensor, totals: ITensor) -> ITensor | None:
    """The softmax whose last step divides terms by totals; None if they are others."""
    exponential, total = terms.producer, _kept(totals)
    if not isinstance(exponential, IUnaryLayer) or exponential.op is not UnaryOperation.EXP or total is None:
        return None
    below = exponential.inputs[0]
    difference = None if below is None else below.producer
    if not isinstance(difference, IElementWiseLayer) or difference.op is not ElementWiseOperation.SUB:
        return None
    x, most = difference.inputs
    if x is None or most is None or total.inputs[0] is not terms or total.op is not ReduceOperation.SUM:
        return None
    axes = axes_of(total.axes, terms.type.rank)
    return make.softmax(x, axes[0]) if len(axes) == 1 and _is_highest(most, x, axes[0]) else None


def _is_highest(most: ITensor, x: ITensor, axis: int) -> bool:
    """Whether a tensor has the highest elements of ``x`` along an axis; perhaps as vmap orders their axes."""
    highest = _kept(most)
    if highest is not None:
        return highest.op is ReduceOperation.MAX and highest.inputs[0] is x and highest.axes == bitmask(axis)
    before, order = _before_transpose(x)
    layer = most.producer
    if not isinstance(layer, IUnsqueezeLayer) or layer.inputs[0] is None or not order:
        return False
    reduced, rest = _before_transpose(layer.inputs[0])
    highest, place = reduced.producer, order[axis]
    if not isinstance(highest, IReduceLayer) or highest.inputs[0] is not before or highest.keep_dims:
        return False
    wanted = [layer - (layer > place) for layer in order if layer != place]
    is_same = (rest or [*range(len(wanted))]) == wanted and most.type.shape[axis] == 1
    return is_same and highest.op is ReduceOperation.MAX and highest.axes == bitmask(place)


def _before_transpose(x: ITensor) -> tuple[ITensor, list[int]]:
    """The tensor that a transpose takes, and its order; the tensor itself, and no order, if nothing is transposed."""
    layer = x.producer
    if not isinstance(layer, IShuffleLayer) or layer.inputs[0] is None or len(layer.inputs) > 1:
        return x, []
    order = [*(layer.first_transpose or ())]
    return (x, []) if layer.reshape_dims or layer.second_transpose else (layer.inputs[0], order)


def _kept(x: ITensor) -> IReduceLayer | None:
    """The reduction that keeps its axes."""
    layer = x.producer
    return layer if isinstance(layer, IReduceLayer) and layer.keep_dims and len(layer.inputs) == 1 else None


def kept_reduction(make: FormulaBuilder, x: ITensor, axes: Sequence[int]) -> ITensor | None:
    """A reduction whose axes are put back, as one that keeps them; None if nothing else is reduced and put back."""
    layer, rank = x.producer, x.type.rank + len(axes)
    if not isinstance(layer, IReduceLayer) or layer.keep_dims or len(layer.inputs) > 1 or x.uses:
        return None
    source = layer.inputs[0]
    if source is None or source.type.rank != rank or axes_of(layer.axes, rank) != tuple(axes):
        return None
    return make.output(make.network.add_reduce(source, layer.op, layer.axes, True))


def without_last_axis(make: FormulaBuilder, x: ITensor) -> ITensor:
    """A tensor without its last axis, of length 1; if that was added, the tensor before."""
    layer = x.producer
    if isinstance(layer, IUnsqueezeLayer) and layer.inputs[0] is not None and layer.inputs[1] is not None:
        axes = layer.inputs[1].type.ints()
        if axes is not None and [axis % x.type.rank for axis in axes] == [x.type.rank - 1]:
            return layer.inputs[0]
    return make.squeeze(x, [x.type.rank - 1])


def untransposed(x: ITensor) -> ITensor | None:
    """The tensor before its last two axes were swapped to give ``x``; None if ``x`` is no such transpose."""
    (before, order), rank = _before_transpose(x), x.type.rank
    return before if rank > 1 and order == [*range(rank - 2), rank - 1, rank - 2] else None


def transposed_einsum(make: FormulaBuilder, x: ITensor, order: Sequence[int]) -> ITensor | None:
    """An einsum whose result is transposed, as one einsum; None for any other tensor."""
    layer = x.producer
    if not isinstance(layer, IEinsumLayer) or x.uses or "->" not in layer.equation:
        return None
    operands, _, result = layer.equation.partition("->")
    equation = f"{operands}->{''.join(result[axis] for axis in order)}"
    return make.einsum(equation, [tensor for tensor in layer.inputs if tensor is not None])


def transposed_again(make: FormulaBuilder, x: ITensor, order: Sequence[int]) -> ITensor | None:
    """A tensor that nothing else reads, transposed before and now again, as one transpose; None for others."""
    source, before = _before_transpose(x)
    return None if x.uses or not before else make.transpose(source, [before[axis] for axis in order])


def softplus(make: FormulaBuilder, body: Any, x: ITensor, zero: Any) -> ITensor | None:
    """Softplus for ``logaddexp(x, 0)``; None if the body of the call is not that of ``logaddexp``."""
    if zero is None or zero != 0 or not x.type.is_float or len(getattr(body, "jaxpr", body).eqns) < FEWEST:
        return None
    avals = [
        jax.ShapeDtypeStruct(variable.aval.shape, variable.aval.dtype)
        for variable in getattr(body, "jaxpr", body).invars
    ]
    for equation, _ in every_equation(jax.make_jaxpr(jnp.logaddexp)(*avals)):
        inner = equation.params.get("call_jaxpr")
        if inner is not None and str(inner) == str(body):
            return make.activation(ActivationType.SOFTPLUS, x, 1.0, 1.0)
    return None


FEWEST = 8
"""The fewest equations that logaddexp has."""


FOLDED: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "sqrt": np.sqrt, "neg": np.negative,
}  # fmt: skip
"""Functions of numbers whose result numpy and XLA round alike."""


def folded(facts: Facts, name: str, *operands: ITensor) -> ITensor | None:
    """The number that an operation on floating-point numbers makes; None if one of them is no known number."""
    values = [facts.scalar_of(tensor) for tensor in operands]
    if name not in FOLDED or any(value is None or value.dtype not in (np.float32, np.float64) for value in values):
        return None
    rank = max(tensor.type.rank for tensor in operands)
    with np.errstate(all="ignore"):
        return facts.make.constant(np.asarray(FOLDED[name](*values)).reshape((1,) * rank))


def without_effect(name: str, value: Any, is_second: bool) -> bool:
    """Whether an operation with this constant leaves the other operand as it is."""
    match name:
        case "add" | "add_any" | "sub" | "or" | "xor":
            is_zero = value.dtype.kind != "f" and value == 0  # -0.0 + 0.0 is 0.0
            return bool(is_zero) and (name != "sub" or is_second)
        case "mul" | "div":
            return value.dtype.kind in "fiu" and bool(value == 1) and (name == "mul" or is_second)
        case "and":
            return value.dtype == np.bool_ and bool(value)
        case "max" | "min":
            return value.dtype.kind == "f" and bool(value == (-np.inf if name == "max" else np.inf))
        case _:
            return False
