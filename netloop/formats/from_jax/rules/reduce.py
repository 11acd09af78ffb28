"""Reductions, running totals, sorting and the places of extremes."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.formats.from_jax.element_types import is_complex
from netloop.formats.from_jax.rules import EquationCall, complex_primitive, on_parts, primitive
from netloop.formats.from_jax.rules.pointwise.complex_numbers import product
from netloop.formats.shared.word_tables import BOOL_REDUCTIONS, CUMULATIVE, REDUCTIONS, TOP_K
from netloop.model.formulas.reduce import bitmask
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.reduce import highest, lowest
from netloop.values.diagnostics import require
from netloop.values.enums import DataType, ReduceOperation, TopKOperation

REDUCE = REDUCTIONS.jax.read | BOOL_REDUCTIONS.jax.read
MONOIDS = {
    "add": ReduceOperation.SUM,
    "mul": ReduceOperation.PROD,
    "max": ReduceOperation.MAX,
    "min": ReduceOperation.MIN,
    "or": ReduceOperation.MAX,
    "and": ReduceOperation.MIN,
}


BITWISE = {"reduce_or": (jnp.bitwise_or, 0), "reduce_and": (jnp.bitwise_and, -1), "reduce_xor": (jnp.bitwise_xor, 0)}
"""The reductions of the bits of integers, with their first elements."""


@primitive(*REDUCE, *BITWISE)
def reduce(call: EquationCall, x: ITensor) -> ITensor:
    """The reduction of that name over axes; of the bits of integers, one element after the other."""
    axes = call.ints("axes")
    if call.name in REDUCE and (x.type.is_bool or call.name not in BITWISE):
        return call.make.reduce(REDUCE[call.name], x, axes)
    join, start = BITWISE[call.name]
    return call.define(lambda value: _folded(value, axes, join, np.asarray(start)), x)[0]


def _folded(x: Any, axes: Sequence[int], join: Any, start: Any) -> Any:
    """A fold over axes, one slice after the other."""
    rest = [axis for axis in range(x.ndim) if axis not in axes]
    rows = jnp.transpose(x, (*axes, *rest)).reshape(-1, *(x.shape[axis] for axis in rest))
    first = jnp.broadcast_to(start.astype(x.dtype), rows.shape[1:])
    return lax.scan(lambda total, row: (join(total, row), None), first, rows)[0]


@primitive("reduce")
def reduce_by(call: EquationCall, *operands: ITensor) -> list[ITensor]:
    """A reduction by addition, multiplication, an extreme, or a logical operation."""
    by = monoid(call.params.get("jaxpr"))
    require(by is not None and len(operands) == 2, "a reduction by a function of its own", fix="write it with lax.scan")
    assert by is not None
    x, start = operands
    tensor = call.make.reduce(by, x, call.ints("dimensions"))
    return [combined(call, by, tensor, start)]


def monoid(body: Any) -> ReduceOperation | None:
    """The reduction whose step a jaxpr of two numbers is; None if it is another function."""
    inner = getattr(body, "jaxpr", body)
    if inner is None or len(inner.eqns) != 1 or {*inner.eqns[0].invars} != {*inner.invars[:2]}:
        return None
    return MONOIDS.get(inner.eqns[0].primitive.name)


def combined(call: EquationCall, by: ReduceOperation, x: ITensor, start: ITensor) -> ITensor:
    """The result of a reduction with one more element; that changes nothing if it is the usual start."""
    value, dtype = call.facts.scalar_of(start), x.type.dtype
    if value is not None and value == neutral(by, dtype):
        return x
    operations = {
        ReduceOperation.SUM: call.make.add,
        ReduceOperation.PROD: call.make.mul,
        ReduceOperation.MAX: call.make.logical_or if x.type.is_bool else call.make.maximum,
        ReduceOperation.MIN: call.make.logical_and if x.type.is_bool else call.make.minimum,
    }
    return operations[by](x, start)


def neutral(by: ReduceOperation, dtype: np.dtype[Any]) -> Any:
    """The element of a type that changes nothing; 0-D."""
    if by in (ReduceOperation.SUM, ReduceOperation.PROD):
        return np.asarray(by is ReduceOperation.PROD).astype(dtype)
    return highest(dtype) if by is ReduceOperation.MIN else lowest(dtype)


# ---------------------------------------------------------------------- running totals


@primitive(*CUMULATIVE.jax.read)
def cumulative(call: EquationCall, x: ITensor) -> ITensor:
    """The running sums or products along an axis."""
    op = CUMULATIVE.jax.read[call.name]
    return call.make.cumulative(op, x, call.make.constant(int(call.params["axis"])), reverse=call.params["reverse"])


RUNNING: dict[str, tuple[Any, Any]] = {
    "cummax": (lax.max, lowest),
    "cummin": (lax.min, highest),
    "cumlogsumexp": (jnp.logaddexp, lowest),
}
"""The functions whose running totals have no layer, and their neutral elements by type."""


@complex_primitive(*RUNNING)
@primitive(*RUNNING)
def running(call: EquationCall, x: ITensor) -> ITensor:
    """The running maximum, minimum, or logarithm of a sum of exponentials along an axis, by a loop."""
    axis, (join, neutral) = int(call.params["axis"]), RUNNING[call.name]
    first_number = neutral(call.dtype)

    def step(total: Any, row: Any) -> tuple[Any, Any]:
        result = join(total, row)
        return result, result

    def totals(x: Any) -> Any:
        rows = jnp.moveaxis(x, axis, 0)
        first = jnp.broadcast_to(first_number.astype(x.dtype), rows.shape[1:])  # as the axis may be empty
        return jnp.moveaxis(lax.scan(step, first, rows, reverse=call.params["reverse"])[1], 0, axis)

    return call.define(totals, x, as_parts=False)[0]


@complex_primitive("reduce_max", "reduce_min")
def extreme_complex(call: EquationCall, x: ITensor) -> ITensor:
    """The extreme of complex numbers over axes, by their real parts, and by the others where those are equal."""
    join, neutral = RUNNING[call.name.replace("reduce_", "cum")]
    axes, start = call.ints("axes"), neutral(call.dtype)
    return call.define(lambda value: _folded(value, axes, join, start), x, as_parts=False)[0]


@on_parts("cumsum")
def _running_sum(a: Any, b: Any, *, axis: int, reverse: bool) -> Any:
    return lax.cumsum(a, axis, reverse), lax.cumsum(b, axis, reverse)


@on_parts("cumprod")
def _running_product(a: Any, b: Any, *, axis: int, reverse: bool) -> Any:
    return _products(a, b, axis, reverse)[1]


@on_parts("reduce_prod")
def _total_product(a: Any, b: Any, *, axes: Sequence[int], **_: Any) -> Any:
    for axis in sorted(axes, reverse=True):
        a, b = _products(a, b, axis)[0]
    return a, b


def _products(a: Any, b: Any, axis: int, reverse: bool = False) -> tuple[Any, Any]:
    """The product of complex numbers along an axis, and those of the first ones, by their parts."""

    def step(total: Any, row: Any) -> tuple[Any, Any]:
        result = product(*total, *row)
        return result, result

    rows = jnp.moveaxis(a, axis, 0), jnp.moveaxis(b, axis, 0)
    one = jnp.ones(rows[0].shape[1:], a.dtype), jnp.zeros(rows[0].shape[1:], a.dtype)
    last, all_products = lax.scan(step, one, rows, reverse=reverse)
    return last, tuple(jnp.moveaxis(part, 0, axis) for part in all_products)


# ---------------------------------------------------------------------- order


@primitive(*TOP_K.jax.read)
def place_of_extreme(call: EquationCall, x: ITensor) -> ITensor:
    """The place of the first largest or smallest element along an axis, or of the first NaN."""
    op = TOP_K.jax.read[call.name]
    (axis,) = call.ints("axes")
    numbers = call.make.cast(x, np.int32) if x.type.is_bool else x
    kind = DataType.INT64 if call.dtype == np.int64 else DataType.INT32
    layer = call.make.network.add_topk(numbers, op, 1, bitmask(axis), kind)
    return call.make.cast(call.make.squeeze(layer.outputs[1], [axis]), call.dtype)


@primitive("top_k", "approx_top_k")
def top_k(call: EquationCall, x: ITensor) -> list[ITensor]:
    """The largest elements along an axis and their places, in total order; an approximate one is exact here."""
    params, rank = call.params, x.type.rank
    axis = int(params.get("axis", params.get("reduction_dimension", params.get("dimension", -1)))) % rank
    op = TopKOperation.MAX if params.get("is_max_k", True) else TopKOperation.MIN
    total_order = "is_max_k" not in params and x.type.is_float
    values, places = call.make.best(op, x, call.lengths([params["k"]])[0], axis, total_order)
    return [values, call.make.cast(places, call.results[1].dtype)]


@primitive("sort")
def sort(call: EquationCall, *operands: ITensor) -> list[ITensor]:
    """Operands in the ascending order of the first ones along an axis, equal ones in their own order."""
    make, axis, count = call.make, int(call.params["dimension"]), call.params["num_keys"]
    if len(operands) == 1:
        return [_ascending(call, operands[0], axis)[0]]
    order: ITensor | None = None
    for key in reversed(operands[:count]):
        now = key if order is None else make.gather_elements(key, order, axis)
        _, places = _ascending(call, now, axis)
        order = places if order is None else make.gather_elements(order, places, axis)
    assert order is not None
    return [_taken(call, tensor, order, axis) for tensor in operands]


@complex_primitive("sort")
def sort_complex(call: EquationCall, *operands: ITensor) -> list[ITensor]:
    """Operands in the order of the real parts of the first ones, and of the imaginary parts where those are equal."""
    have_parts = [is_complex(result) for result in call.results]
    keys = call.params["num_keys"]

    def ordered(*arrays: Any) -> list[Any]:
        flat = [
            part
            for array, has_parts in zip(arrays, have_parts, strict=True)
            for part in ((array[..., 0], array[..., 1]) if has_parts else (array,))
        ]
        count = keys + sum(have_parts[:keys])
        result = iter(lax.sort(flat, dimension=call.params["dimension"], is_stable=True, num_keys=count))
        return [jnp.stack([next(result), next(result)], -1) if has_parts else next(result) for has_parts in have_parts]

    return call.define(ordered, *operands)


def _taken(call: EquationCall, x: ITensor, order: ITensor, axis: int) -> ITensor:
    """Elements taken in an order; if they are their own places, that is the order itself."""
    if x.type.is_integer and is_iota(call, x, axis):
        return call.make.cast(order, x.type.dtype)
    return call.make.gather_elements(x, order, axis)


def is_iota(call: EquationCall, x: ITensor, axis: int) -> bool:
    """Whether a tensor is known to be the places along an axis."""
    value = call.make.known(x)
    if value is not None:
        return np.array_equal(value, np.broadcast_to(_places(value.shape, axis), value.shape))
    return call.facts.iotas.get(x) == axis


def _places(shape: Sequence[int], axis: int) -> Any:
    return np.arange(shape[axis]).reshape([-1 if index == axis else 1 for index in range(len(shape))])


def _ascending(call: EquationCall, x: ITensor, axis: int) -> tuple[ITensor, ITensor]:
    """An axis in ascending order, NaN last, and the int64 places of the elements before."""
    make, dtype = call.make, x.type.dtype
    length = make.length(x, axis)
    if not x.type.is_float:
        values, places = make.best(TopKOperation.MIN, make.cast(x, np.int32) if x.type.is_bool else x, length, axis)
        return make.cast(values, dtype), places
    # the layer puts NaN first, and equal elements in order: so the axis is reversed before and after
    values, places = make.best(TopKOperation.MAX, make.backwards(x, [axis]), length, axis)
    last = length - 1 if isinstance(length, int) else make.sub(length, 1)
    return make.backwards(values, [axis]), make.sub(last, make.backwards(places, [axis]))
