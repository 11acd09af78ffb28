"""Numbers that depend on no operand, or only on its shape."""

import numpy as np

from netloop.formats.from_jax.rules import EquationCall, primitive
from netloop.model.graph.tensor import ITensor


@primitive("iota")
def iota(call: EquationCall, *lengths: ITensor) -> ITensor:
    """The places along an axis; layers that broadcast by themselves read it along one axis."""
    make, axis, shape = call.make, int(call.params["dimension"]), call.params["shape"]
    start = make.constant(np.asarray(0, call.dtype if call.dtype.kind in "iuf" else np.int64))
    numbers = make.cast(make.arange(call.lengths([shape[axis]])[0], start), call.dtype)
    result = make.expand_dims(numbers, [index for index in range(len(shape)) if index != axis])
    call.facts.iotas[result] = axis
    return result


@primitive("empty", "empty2")
def empty(call: EquationCall) -> ITensor:
    """Zeros, instead of undefined elements."""
    return call.make.constant(np.zeros((), call.dtype))


@primitive("dim_as_value")
def length_as_value(call: EquationCall) -> ITensor:
    """A symbolic length as a number."""
    return call.make.cast(call.make.tensor(call.lengths([call.params["dim"]])[0]), call.dtype)


@primitive("dimension_size")
def dimension_size(call: EquationCall, x: ITensor) -> ITensor:
    """The length of an axis."""
    return call.make.cast(call.make.tensor(call.make.length(x, int(call.params["dimension"]))), call.dtype)
