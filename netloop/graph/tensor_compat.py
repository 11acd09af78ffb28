"""What scripts for TensorRT 10 say of tensors, and TensorRT 11 no longer asks for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from netloop.enums import DataType

if TYPE_CHECKING:
    from netloop.graph.infer import TypeTable

PLAIN = frozenset(
    {
        *(DataType.FLOAT, DataType.HALF, DataType.BF16, DataType.DOUBLE),
        *(DataType.INT32, DataType.INT64, DataType.UINT8, DataType.BOOL),
    }
)
"""The types whose elements stand for themselves, and not for others by a scale."""


def check_data_type(name: str, value: Any) -> DataType:
    """``value``, if it is an element type.

    Raises:
        TypeError: it is not.
    """
    if not isinstance(value, DataType):
        raise TypeError(f"{name} must be a member of DataType, not {value!r}")
    return value


class TensorHints:
    """What a script may say of the range of a tensor's elements."""

    types: TypeTable
    _range: tuple[float, float] | None = None

    @property
    def dynamic_range(self) -> tuple[float, float] | None:
        """Between which numbers the elements are said to be; None if nothing was said. It changes nothing."""
        return self._range

    @dynamic_range.setter
    def dynamic_range(self, limits: Sequence[float]) -> None:
        if not isinstance(limits, Sequence) or len(limits) != 2:
            raise TypeError(f"a dynamic range is two numbers, not {limits!r}")
        self.set_dynamic_range(*limits)

    def set_dynamic_range(self, min: float, max: float) -> bool:
        """Say between which numbers the elements are; whether ``min`` and ``max`` are finite and in order."""
        for limit in (min, max):
            if not isinstance(limit, float | int):
                raise TypeError(f"a dynamic range is two numbers, and {limit!r} is none")
        if not (math.isfinite(min) and math.isfinite(max) and min <= max):
            return False
        self._range = float(min), float(max)
        self.types.owner.advise("dynamic_range", "dynamic ranges change nothing: only add_quantize quantises")
        return True

    def reset_dynamic_range(self) -> None:
        """Forget what was said."""
        self._range = None
