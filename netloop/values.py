"""The values of tensors, of sequences of tensors, and of what may be absent."""

from collections.abc import Callable
from typing import Any

import numpy as np

from netloop.types import Absent, Tensors, TensorType


def on_host(value: Any) -> Any:
    """A value in numpy: an array, or what is no single one."""
    if isinstance(value, Tensors):
        return Tensors(map(np.asarray, value))
    return value if isinstance(value, Absent) else np.asarray(value)


def given_back(value: Any, array: Callable[[Any], Any] = np.array) -> Any:
    """A value as users get it: an array, a list of arrays, or None where it is absent."""
    if isinstance(value, Tensors):
        return [array(each) for each in value]
    return None if isinstance(value, Absent) else array(value)


def type_of(value: Any, known: TensorType) -> TensorType:
    """The type of a value; that of a sequence or optional value is what is known of it."""
    return TensorType.of(value) if known.is_tensor else known


def each_output(made: Any) -> tuple[Any, ...]:
    """The values that a layer made, which may be a tuple of several or just one."""
    return made if isinstance(made, tuple) and not isinstance(made, Tensors) else (made,)
