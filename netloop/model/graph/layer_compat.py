"""The precision and output types of layers in TensorRT 10, which TensorRT 11 has removed.

Networks were weakly typed there: the script named the types that layers might compute in, and TensorRT chose. netloop
computes in the types of the tensors, so that most settings are recorded, can be read back, and have no effect.
"""

from __future__ import annotations

from typing import Any, ClassVar

from netloop.model.graph.attributes import check_member
from netloop.model.graph.infer import TypeTable
from netloop.model.graph.tensor import ITensor
from netloop.values.enums import DataType
from netloop.values.types import TensorType, data_type
from netloop.values.unpicklable import OF_A_NETWORK, Unpicklable

PLAIN = frozenset(
    {
        *(DataType.FLOAT, DataType.HALF, DataType.BF16, DataType.DOUBLE),
        *(DataType.INT32, DataType.INT64, DataType.UINT8, DataType.BOOL),
    }
)
"""The types whose elements are values themselves, not codes that need a scale."""

COMPUTING = frozenset({DataType.FLOAT, DataType.HALF, DataType.BF16, DataType.INT8, DataType.FP8})
"""The types in which a weakly typed network might compute floating-point tensors."""

TYPE_ATTRIBUTE = "to_type"


def recorded_type(name: str) -> Any:
    """Return an attribute of layers that is recorded without effect; the log says so once."""

    def read(layer: LayerCompatibility) -> DataType:
        return layer.recorded_types.get(name, layer.default_type())

    def write(layer: LayerCompatibility, value: DataType) -> None:
        layer.record(name, check_member(f"{type(layer).__name__}.{name}", value, DataType))
        layer.types.owner.warn_once(name, f"{name} has no effect: a layer computes in the type of its inputs")

    return property(read, write)


class LayerCompatibility(Unpicklable):
    """The settings of TensorRT 10 for the types of a layer.

    Attributes:
        precision: the element type in which the layer should compute; recorded, without effect.
    """

    UNPICKLABLE = OF_A_NETWORK

    OUTPUT_TYPES: ClassVar[frozenset[DataType]] = frozenset()
    """The types to which ``set_output_type`` converts output 0, by setting ``to_type``."""

    types: TypeTable
    outputs: tuple[ITensor, ...]
    recorded_types: dict[str | int, DataType] = {}

    precision: DataType = recorded_type("precision")

    def record(self, name: str | int, value: DataType | None) -> None:
        """Record a type for an attribute or the index of an output; None removes it."""
        kept = {key: type for key, type in self.recorded_types.items() if key != name}
        vars(self)["recorded_types"] = kept if value is None else {**kept, name: value}

    def default_type(self) -> DataType:
        """The element type of output 0; FLOAT where there is none."""
        return (self._type_of(0) if self.outputs else None) or DataType.FLOAT

    def _type_of(self, index: int) -> DataType | None:
        type_ = self.types.of(self.outputs[index])
        return data_type(type_.dtype) if isinstance(type_, TensorType) else None

    @property
    def precision_is_set(self) -> bool:
        """Whether ``precision`` was set."""
        return "precision" in self.recorded_types

    def reset_precision(self) -> None:
        """Remove the recorded ``precision``."""
        self.record("precision", None)

    # ------------------------------------------------------------------ output types

    def get_output_type(self, index: int) -> DataType:
        """Return the element type of output ``index``, or the one that ``set_output_type`` recorded.

        Raises:
            IndexError: there is no such output.
        """
        output = self._output(index)
        return self.recorded_types.get(index) or data_type(output.type.dtype)

    def set_output_type(self, index: int, dtype: DataType) -> None:
        """Set the element type of an output, as scripts for TensorRT 10 do.

        On an identity, a fill, a quantize or a dequantize it sets ``to_type``. Among floating-point types, and from
        them to INT8, it is recorded without effect. Any other type is ignored, and the log says so.

        Raises:
            TypeError: ``dtype`` is not a DataType.
            IndexError: there is no such output.
        """
        output, asked = self._output(index), check_member("dtype", dtype, DataType)
        own, warn_once = self._type_of(index), self.types.owner.warn_once
        if index == 0 and asked in self.OUTPUT_TYPES:
            setattr(self, TYPE_ATTRIBUTE, asked)
        elif own is not asked and {own, asked} <= COMPUTING:
            warn_once("set_output_type", "set_output_type has no effect: a layer computes in the type of its inputs")
        elif own is not asked:
            what = f"{output.name!r} stays {own and own.name}, since its layer does not convert to {asked.name}"
            warn_once(f"set_output_type of {output.name}", f"{what}: use add_cast")
            return
        self.record(index, asked)

    def output_type_is_set(self, index: int) -> bool:
        """Whether ``set_output_type`` was called for an output, and not ignored."""
        return self._output(index).position in self.recorded_types

    def reset_output_type(self, index: int) -> None:
        """Undo ``set_output_type``."""
        is_default = not self.output_type_is_set(index) or index > 0
        if not is_default and self.OUTPUT_TYPES and hasattr(type(self), TYPE_ATTRIBUTE):
            setattr(self, TYPE_ATTRIBUTE, getattr(type(self), TYPE_ATTRIBUTE))
        self.record(index, None)

    def _output(self, index: int) -> ITensor:
        if not 0 <= index < len(self.outputs):
            raise IndexError(f"{type(self).__name__} has no output {index}")
        return self.outputs[index]
