"""The attributes of layers: checks of their values, and their conversion to the form that layers keep."""

import operator
from collections.abc import Callable
from enum import Enum
from types import UnionType
from typing import Any, Union, get_args, get_origin

import numpy as np

from netloop.model.graph.argument_hints import int_hint, member_hint
from netloop.model.weights import weights_array
from netloop.values.checked_attributes import text
from netloop.values.dims import DimsLike, PermutationLike, check_dims, check_order, check_word
from netloop.values.types import Array, FlatArray


def check_int(name: str, value: Any) -> int:
    """Return ``value`` as an int of 64 bits.

    Raises:
        TypeError: it is not an int.
        ValueError: it has more bits.
    """
    if isinstance(value, bool | np.bool_ | Enum):
        raise TypeError(f"{name} must be an int, not {value!r}")
    try:
        return check_word(name, operator.index(value))
    except TypeError:
        raise TypeError(f"{name} must be an int, not {value!r}{int_hint(name, value)}") from None


def _convert_ranks(name: str, value: Any) -> int:
    ranks = check_int(name, value)
    if ranks < 1:
        raise ValueError(f"{name} must be at least 1, not {ranks}")
    return ranks


def check_float(name: str, value: Any) -> float:
    """Return ``value`` as a float.

    Raises:
        TypeError: it is not a number.
        ValueError: it is too large for a float.
    """
    if isinstance(value, bool | np.bool_ | str | bytes | Enum | np.complexfloating) or (
        isinstance(value, np.ndarray) and value.ndim > 0
    ):
        raise TypeError(f"{name} must be a number, not {value!r}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} is too large for a float") from None
    except TypeError:
        raise TypeError(f"{name} must be a number, not {value!r}") from None


def check_bool(name: str, value: Any) -> bool:
    """Return ``value`` as a bool; 0 and 1 are taken too.

    Raises:
        TypeError: it is none, as a text such as "false" is, which Python takes for true.
    """
    if not isinstance(value, bool | np.bool_ | int) or value not in (0, 1):
        raise TypeError(f"{name} must be a bool, not {value!r}")
    return bool(value)


_CONVERTERS: dict[Any, Callable[[str, Any], Any]] = {
    int: check_int,
    float: check_float,
    bool: check_bool,
    str: text,
    DimsLike: check_dims,
    PermutationLike: check_order,
    Array: lambda name, value: weights_array(value, name),
    FlatArray: lambda name, value: weights_array(value, name).reshape(-1),
}

BASE_ATTRIBUTES = {"name": text, "metadata": text, "num_ranks": _convert_ranks}


def converter(hint: Any) -> Callable[[str, Any], Any]:
    """Return the function that checks and normalizes a value for an attribute annotated ``hint``."""
    if get_origin(hint) in (Union, UnionType):
        (inner,) = (argument for argument in get_args(hint) if argument is not type(None))
        convert = converter(inner)
        return lambda name, value: None if value is None else convert(name, value)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return lambda name, value: check_member(name, value, hint)
    if hint in _CONVERTERS:
        return _CONVERTERS[hint]
    return lambda name, value: check_instance(name, value, hint)


def check_member(name: str, value: Any, enum: type[Enum]) -> Any:
    """Return ``value``, which must be a member of ``enum``.

    Raises:
        TypeError: it is not.
    """
    if not isinstance(value, enum):
        raise TypeError(f"{name} must be a member of {enum.__name__}, not {value!r}{member_hint(value, enum)}")
    return value


def check_instance(name: str, value: Any, cls: type) -> Any:
    """Return ``value``, which must be a ``cls``.

    Raises:
        TypeError: it is not.
    """
    if not isinstance(value, cls):
        hint = ": give its network" if isinstance(getattr(value, "network", None), cls) else ""
        argument_hint = getattr(cls, "ARGUMENT_HINT", None)
        hint = hint or ("" if argument_hint is None else argument_hint(value))
        shown = f"the function {value.__name__}" if hint and hasattr(value, "__name__") else repr(value)
        raise TypeError(f"{name} must be {cls.__name__}, not {shown}{hint}")
    return value


def flag_bit(flag: Any, enum: type[Enum]) -> int:
    """Return the bit of a flag, which must be a member of ``enum``, in an int of flags."""
    return 1 << int(check_member("flag", flag, enum))
