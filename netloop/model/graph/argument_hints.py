"""Hints for an argument of the wrong Python type: the text to write instead."""

from collections.abc import Iterable
from enum import Enum
from os import PathLike, fspath
from typing import Any

import numpy as np

from netloop.values.enums import DataType
from netloop.values.types import data_type, numpy_type

MOST_AXES = 8
"""The most axes that a tensor has."""


def tensor_hint(value: Any) -> str:
    """How a number or array becomes a tensor, or why there is none."""
    if value is None:
        return ": get_output(i) of a layer without an output i is None"
    if isinstance(value, bool | np.bool_):
        return _of_constant((), f"np.array({bool(value)}, np.bool_)")
    if isinstance(value, int | np.integer):
        return _of_constant((), f"np.array({int(value)}, np.int32)")
    if isinstance(value, float | np.floating):
        return _of_constant((), f"np.array({float(value)}, np.float32)")
    if isinstance(value, np.ndarray):
        return _of_constant(value.shape, "array" if value.dtype != np.float64 else "array.astype(np.float32)")
    if isinstance(value, list | tuple) and value and all(type(element) in (int, float) for element in value):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        kind = "np.float32" if any(type(element) is float for element in value) else "np.int32"  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return _of_constant((len(value),), f"np.array({value}, {kind})")  # pyright: ignore[reportUnknownArgumentType]
    return ""


def _of_constant(shape: tuple[int, ...], array: str) -> str:
    return f": write network.add_constant({shape}, {array}).get_output(0)"


LOADERS = {".onnx": "netloop.onnx.load", ".xml": "netloop.openvino.load", ".plan": "netloop.plan.load"}
"""The function that loads a network from a file, by the end of its name."""


def network_hint(value: Any) -> str:
    """How a file or a function becomes a network."""
    if isinstance(value, str | PathLike):
        path = str(fspath(value))  # pyright: ignore[reportUnknownArgumentType]
        load = next((load for end, load in LOADERS.items() if path.lower().endswith(end)), "netloop.onnx.load")
        return f": write {load}({path!r})"
    if callable(value) and not isinstance(value, type):
        return ": write netloop.from_jax(function, *examples)"
    return ""


def member_hint(value: Any, enum: type[Enum]) -> str:
    """The member of an enumeration that another value stands for."""
    if isinstance(value, Enum):
        return f": write {enum.__name__}.{value.name}" if value.name in enum.__members__ else _members(enum)
    if enum is DataType:
        return _type_hint(value)
    if isinstance(value, str):
        name = value.upper().rpartition(".")[2]
        return f": write {enum.__name__}.{name}" if name in enum.__members__ else _members(enum)
    return _members(enum) if value is None or isinstance(value, int | float) else ""


def _members(enum: type[Enum]) -> str:
    """The first members of an enumeration, as examples."""
    names = [f"{enum.__name__}.{member}" for member in list(enum.__members__)[:3]]
    more = ", ..." if len(enum.__members__) > len(names) else ""
    return f": write one of {', '.join(names)}{more}"


def _type_hint(value: Any) -> str:
    """The name of the type that numpy's, PyTorch's or Python's stands for."""
    plain = {float: "float32", int: "int32", bool: "bool"}.get(value) if isinstance(value, type) else None
    word = plain or (value if isinstance(value, type | np.dtype) else str(value).rpartition(".")[2])
    other = ": write netloop.float32, or another element type"
    if isinstance(word, str) and not word.isidentifier():  # numpy reads other words as lists of types
        return other
    try:
        dtype = data_type(word)
    except (TypeError, ValueError):
        return other
    name = str(numpy_type(dtype))
    return f": write netloop.{name}" if name.isidentifier() and "_" not in name else f": write DataType.{dtype.name}"


def int_hint(name: str, value: Any) -> str:
    """How axes become a bit mask."""
    if not name.endswith("axes") or isinstance(value, str) or not isinstance(value, Iterable):
        return ""
    axes: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
    if not axes or not all(type(axis) is int and 0 <= axis < MOST_AXES for axis in axes):
        return ": it has bit i for axis i, such as 1 << 0 | 1 << 1 for axes 0 and 1"
    return f": it has bit i for axis i, so write {' | '.join(f'1 << {axis}' for axis in axes)}"
