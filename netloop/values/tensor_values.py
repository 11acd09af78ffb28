"""Conversions of the values of tensors, sequences and optionals, for users and for the host."""

from collections.abc import Callable
from typing import Any

import numpy as np

from netloop.values.map_types import Map
from netloop.values.string_arrays import STRING
from netloop.values.types import Absent, Tensors, TensorType


def to_numpy(value: Any) -> Any:
    """Convert a value to numpy; absent values and maps stay as they are."""
    if isinstance(value, Tensors):
        return Tensors([array if type(array) is np.ndarray else to_numpy(array) for array in value])
    return value if isinstance(value, Absent | Map) else np.asarray(value)


def integer(value: Any) -> int:
    """A scalar as a number: ``int`` and ``bool`` take 10 us for an array of JAX on a CPU, numpy's view of it 2."""
    return int(np.asarray(value))


def to_user(value: Any, array: Callable[[Any], Any] = np.array) -> Any:
    """Convert a value to the form that users get: an array, a dict, a list of these, or None if it is absent.

    ``array`` makes each array of numbers; strings become an array of str objects.
    """
    if isinstance(value, Tensors):
        return [to_user(element, array) for element in value]
    if isinstance(value, Absent):
        return None
    if isinstance(value, Map):
        return value.as_dict()
    return value.astype(object) if value.dtype == STRING else array(value)


def type_of(value: Any, known: TensorType) -> TensorType:
    """The type of a value; for a sequence, map or optional, its known type."""
    return known if isinstance(value, Tensors | Absent | Map) else TensorType.of(value)


def each_output(made: Any) -> tuple[Any, ...]:
    """The outputs of a layer as a tuple; a single output comes without one."""
    return made if isinstance(made, tuple) and not isinstance(made, Tensors) else (made,)
