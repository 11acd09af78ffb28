"""Arrays written on the command line: ``20``, ``[1,2,3]``, ``true``, or a text for an input of strings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

import netloop as trt
from netloop.tools.cli.failures import Misuse
from netloop.values.types import Array, agree

WORDS = {"true": True, "false": False, "nan": np.nan, "inf": np.inf, "-inf": -np.inf}
"""Words that JSON writes otherwise, or in any case of letters."""


def array(tensor: trt.ITensor, text: str, shape: Sequence[int]) -> Array:
    """The array of an input; a number, bool or text fills ``shape``.

    Raises:
        Misuse: the text is no value of the input's type and shape.
    """
    value = _value(tensor, text)
    if not isinstance(value, list):
        shape, values = tuple(shape), [value]
    else:
        shape, values = _flat(tensor, text, value)
    wrong = [value for value in values if not _fits(tensor, value)]
    if wrong:
        raise Misuse(f"input {tensor.name!r} is {tensor.type}, and --inputs has {wrong[0]!r} for it")
    dtype = object if tensor.type.is_string else tensor.type.dtype
    result: Array = np.empty(shape, dtype)
    result.reshape(-1)[:] = np.asarray(values, dtype)
    return result


def _value(tensor: trt.ITensor, text: str) -> Any:
    try:
        return WORDS[text.lower()] if text.lower() in WORDS and not tensor.type.is_string else json.loads(text)
    except ValueError:
        if tensor.type.is_string and not text.startswith("["):
            return text
        example = "x=3, x=[1,2,3] or x=file.npy"
        raise Misuse(f"{text!r} is no number, list or .npy file for input {tensor.name!r}; write {example}") from None


def _flat(tensor: trt.ITensor, text: str, value: list[Any]) -> tuple[tuple[int, ...], list[Any]]:
    """The shape and the elements of nested lists."""
    shape, values = [len(value)], value
    while any(isinstance(value, list) for value in values):
        lengths = {len(value) if isinstance(value, list) else -1 for value in values}
        if len(lengths) > 1:
            raise Misuse(f"the lists of {text!r} for input {tensor.name!r} have different lengths")
        shape.append(*lengths)
        values = [item for value in values for item in value]
    # an empty list has as many axes as the input
    shape += [length if length >= 0 else 0 for length in tensor.type.shape[len(shape) :]] if not values else []
    if not agree(tuple(shape), tensor.type.shape):
        raise Misuse(f"input {tensor.name!r} is {tensor.type}, and --inputs has a list of the shape {shape} for it")
    return tuple(shape), values


def _fits(tensor: trt.ITensor, value: Any) -> bool:
    """Whether a value is one of the element type of an input."""
    of = tensor.type
    if of.is_string or isinstance(value, str):
        return of.is_string and isinstance(value, str)
    if not isinstance(value, bool | int | float):
        return False
    if is_floating(of.dtype):
        return not isinstance(value, bool)
    if of.is_bool:
        return value in (0, 1)
    return is_integer(of.dtype, value) and not isinstance(value, bool)


def is_floating(dtype: Any) -> bool:
    """Whether an element type is one of floating-point numbers, those of 8 bits among them."""
    return bool(jnp.issubdtype(dtype, jnp.floating))


def is_integer(dtype: Any, value: Any) -> bool:
    """Whether a number is one of an integer type."""
    return isinstance(value, int) and jnp.iinfo(dtype).min <= value <= jnp.iinfo(dtype).max
