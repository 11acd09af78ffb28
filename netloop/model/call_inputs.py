"""Checks of the arrays that a caller passes for the inputs of a network."""

import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from netloop.model.graph.layer import ILayer
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.sources import IConstantLayer
from netloop.values.diagnostics import Finding, InputError, did_you_mean, listed, reason
from netloop.values.foreign_arrays import UnreadableArrayError, array_of
from netloop.values.map_types import Map, MapType
from netloop.values.string_arrays import STRING, string_array, type_name
from netloop.values.types import ABSENT, UNKNOWN, Absent, Array, OptionalType, SequenceType, Tensors, TensorType, agree


def check_inputs(tensors: Sequence[ITensor], inputs: Mapping[str, Any]) -> dict[ITensor, Any]:
    """Return the arrays for some inputs by tensor; each must fit its input exactly.

    Raises:
        InputError: one is missing, unknown, or of another element type or shape; all of these are reported.
    """
    if not isinstance(inputs, Mapping):
        call = (
            f"{{{', '.join(f'{tensor.name!r}: ...' for tensor in tensors[:2])}{', ...' if len(tensors) > 2 else ''}}}"
        )
        raise TypeError(f"inputs must be a dict from names to arrays, not {type(inputs).__name__}: write {call}")
    # The common case, decided without building any finding: this runs in every call of an engine.
    if len(inputs) == len(tensors) and all(_fits(tensor, inputs.get(tensor.name)) for tensor in tensors):
        return {tensor: inputs[tensor.name] for tensor in tensors}
    names = {tensor.name for tensor in tensors}
    findings = [_unknown(name, tensors) for name in inputs if name not in names]
    arrays: dict[ITensor, Any] = {}
    for tensor in tensors:
        if tensor.name not in inputs:
            what, fix = f"input {tensor.name!r} is missing; it is {tensor.declared}", f"pass {{{tensor.name!r}: array}}"
            findings.append(Finding("NL602", what, fix=fix, at=tensor))
            continue
        assert tensor.declared is not None
        try:
            arrays[tensor] = value = _value(inputs[tensor.name], tensor.declared)
        except ValueError as error:
            findings.append(_no_array(tensor, tensor.declared, error))
        else:
            findings += filter(None, [_misfit(tensor, value)])
    if findings:
        raise InputError(*findings)
    return arrays


def check_values(tensors: Sequence[ITensor], inputs: Mapping[str, Any]) -> dict[ITensor, Any]:
    """Return the same as ``check_inputs``, where no array may be a tracer of JAX.

    Raises:
        InputError: one is missing, unknown, of another element type or shape, or a tracer.
    """
    arrays = check_inputs(tensors, inputs)
    refuse_tracers(arrays)
    return arrays


def refuse_tracers(arrays: Mapping[ITensor, Any]) -> None:
    """Check that none of the values of inputs is a tracer of JAX.

    Raises:
        InputError: one is.
    """
    traced = [key for key, value in arrays.items() if any(isinstance(array, Tracer) for array in _parts(value))]
    if traced:
        fix = "inside jit, grad and vmap use the function that netloop.to_jax(network) returns"
        raise InputError(
            *(Finding("NL607", f"JAX is tracing input {tensor.name!r}", "", reason("NL607"), fix) for tensor in traced)
        )


def refuse_deleted(tensors: Sequence[ITensor], arrays: Sequence[Any]) -> None:
    """Check that the memory of each input is still its own.

    Raises:
        InputError: the memory of one was donated to an earlier call, or deleted.
    """
    gone = [tensor for tensor, array in zip(tensors, arrays, strict=True) if _is_deleted(array)]
    if gone:
        fix = "pass the output that took its place, or compile without donating the input"
        whys = (
            Finding("NL626", f"the array of input {tensor.name!r} is deleted", "", reason("NL626"), fix, at=tensor)
            for tensor in gone
        )
        raise InputError(*whys)


def _is_deleted(value: Any) -> bool:
    return isinstance(value, jax.Array) and not isinstance(value, Tracer) and value.is_deleted()


def _fits(tensor: ITensor, array: Any) -> bool:
    """Whether a value is an array of exactly the type of an input; False for an input with a shape that varies."""
    wanted = tensor.declared
    is_array = isinstance(array, np.ndarray | jax.Array)
    return is_array and wanted is not None and array.shape == wanted.shape and array.dtype == wanted.dtype


def _array(value: Any, declared: TensorType) -> Any:
    if declared.is_string:
        return string_array(value)
    return array_of(value)


def _value(value: Any, declared: TensorType) -> Any:
    """Convert the value for an input to arrays."""
    if isinstance(declared, OptionalType):
        return ABSENT if value is None else _value(value, declared.present)
    if isinstance(declared, MapType):
        return _map(value, declared)
    if not isinstance(declared, SequenceType):
        return _array(value, declared)
    if not isinstance(value, list | tuple):
        raise ValueError(f"a sequence must be a list or tuple of arrays, not {type(value).__name__}")
    parts: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
    return Tensors(_array(part, declared) for part in parts)


def _map(value: Any, declared: MapType) -> Map:
    if not isinstance(value, Mapping):
        raise ValueError(f"a map must be a dict, not {type(value).__name__}")
    pairs: list[tuple[Any, Any]] = [*value.items()]
    keys, values = (
        _column([pair[side] for pair in pairs], dtype) for side, dtype in enumerate((declared.key, declared.dtype))
    )
    return Map.of(keys, values)


def _column(values: list[Any], dtype: np.dtype[Any]) -> Array:
    """The keys or values of a dict as an array: strings, integers, or numbers."""
    if dtype == STRING:
        return string_array(np.array(values, object))
    number = numbers.Integral if dtype.kind == "i" else numbers.Real
    others = [type(value).__name__ for value in values if isinstance(value, bool) or not isinstance(value, number)]
    if others:
        raise ValueError(f"{type_name(dtype)} stands for {number.__name__.lower()} numbers, not {others[0]}")
    try:
        return np.array(values, dtype)
    except OverflowError as error:
        raise ValueError(str(error)) from None


def _parts(value: Any) -> tuple[Any, ...]:
    """The arrays in a value whose types are still to be checked."""
    if isinstance(value, Tensors):
        return value
    return () if isinstance(value, Absent | Map) else (value,)


def _no_array(tensor: ITensor, declared: TensorType, error: ValueError) -> Finding:
    """The finding for a value that is no array, or one that cannot be read."""
    if isinstance(error, UnreadableArrayError):
        return _unreadable(tensor.name, error, tensor)
    wanted = "an array of strings" if declared.is_string else "an array"
    what = f"input {tensor.name!r} is {declared}, and its value is not {wanted}"
    return Finding("NL603", what, why=str(error), at=tensor)


def array_named(name: str, value: Any) -> Any:
    """The value for an input as an array, before it is known whether it fits; see ``array_of``.

    Raises:
        InputError: it cannot be read here.
    """
    try:
        return array_of(value)
    except UnreadableArrayError as error:
        raise InputError(_unreadable(name, error)) from error


def _unreadable(name: str, error: UnreadableArrayError, at: Any = None) -> Finding:
    return Finding(
        "NL657", f"the value of {name!r} cannot be read here: it is {error.what}", why=error.why, fix=error.fix, at=at
    )


def _unknown(name: str, tensors: Sequence[ITensor]) -> Finding:
    names = [tensor.name for tensor in tensors]
    layers: Sequence[ILayer] = getattr(tensors[0].types.owner, "layers", ()) if tensors else ()
    constant = next((layer for layer in layers if isinstance(layer, IConstantLayer) and layer.name == name), None)
    has = listed(sorted(names)) or "none"
    if constant is None:
        return Finding("NL602", f"the network has no input {name!r}; it has {has}", fix=did_you_mean(str(name), names))
    what = f"{name!r} is a constant of the network, whose inputs are {has}"
    fix = "pass it to an engine of netloop.compile, or to netloop.evaluate, which take other values for a default"
    if constant.input_shape is None:
        fix = "make it an input; netloop.onnx.load(model, as_inputs=[...]) does for an initializer"
    return Finding("NL602", what, fix=fix, at=constant)


def _conversion(actual: TensorType, declared: TensorType) -> str:
    """How an array becomes one of another type, as far as that is known."""
    wanted, name = declared.held_shape, type_name(declared.dtype)
    if actual.dtype != declared.dtype:
        default = "; numpy's own default is float64" if actual.dtype == np.float64 else ""
        return f"pass an array of dtype {name}{default}"
    if wanted is not None and UNKNOWN not in wanted and math.prod(wanted) == actual.volume:
        return f"pass value.reshape({wanted})"
    return ""


def _misfit(tensor: ITensor, value: Any) -> Finding | None:
    """The finding for the first array of a value that does not fit; None if all fit."""
    declared = tensor.declared
    assert declared is not None
    for array in _parts(value):
        wanted, shape, dtype = declared.held_shape, tuple(array.shape), np.dtype(array.dtype)
        if dtype != declared.dtype or not (wanted is None or agree(shape, wanted)):
            what = f"input {tensor.name!r} is {declared}, and its value is {TensorType(dtype, shape)}"
            return Finding(
                "NL603", what, why=reason("NL603"), fix=_conversion(TensorType(dtype, shape), declared), at=tensor
            )
    return None
