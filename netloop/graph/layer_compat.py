"""What scripts for TensorRT 10 say of the types of layers, and TensorRT 11 no longer asks for.

There a network was weakly typed: the script named the types that layers might compute in, and TensorRT chose. netloop
computes in the types that tensors have, so that most of it is recorded, told back, and changes nothing.
"""

from __future__ import annotations

from typing import Any, ClassVar

from netloop.enums import DataType
from netloop.graph.infer import TypeTable
from netloop.graph.tensor import ITensor
from netloop.graph.tensor_compat import check_data_type
from netloop.types import TensorType, data_type

COMPUTING = frozenset({DataType.FLOAT, DataType.HALF, DataType.BF16, DataType.INT8, DataType.FP8})
"""The types that a weakly typed network might compute floating-point tensors in."""

TYPE_ATTRIBUTE = "to_type"


def hint(name: str) -> Any:
    """An attribute of layers that is recorded and changes nothing, of which the log tells once."""

    def read(layer: LayerHints) -> DataType:
        return layer.hints.get(name, layer.usual_type())

    def write(layer: LayerHints, value: DataType) -> None:
        layer.record(name, check_data_type(f"{type(layer).__name__}.{name}", value))
        layer.types.owner.advise(name, f"{name} changes nothing: a layer computes in the type of its inputs")

    return property(read, write)


class LayerHints:
    """What a script may say of the types of a layer.

    Attributes:
        precision: the element type that it is to compute in; it changes nothing.
    """

    OUTPUT_TYPES: ClassVar[frozenset[DataType]] = frozenset()
    """The types that ``set_output_type`` makes of output 0, by setting ``to_type``."""

    types: TypeTable
    outputs: tuple[ITensor, ...]
    hints: dict[str | int, DataType] = {}

    precision: DataType = hint("precision")

    def record(self, name: str | int, value: DataType | None) -> None:
        """Keep a hint, or drop it."""
        kept = {each: hint for each, hint in self.hints.items() if each != name}
        vars(self)["hints"] = kept if value is None else {**kept, name: value}

    def usual_type(self) -> DataType:
        """The element type of output 0; FLOAT where there is none."""
        return (self._type_of(0) if self.outputs else None) or DataType.FLOAT

    def _type_of(self, index: int) -> DataType | None:
        found = self.types.of(self.outputs[index])
        return data_type(found.dtype) if isinstance(found, TensorType) else None

    @property
    def precision_is_set(self) -> bool:
        """Whether ``precision`` was set."""
        return "precision" in self.hints

    def reset_precision(self) -> None:
        """Forget what ``precision`` was set to."""
        self.record("precision", None)

    # ------------------------------------------------------------------ output types

    def get_output_type(self, index: int) -> DataType:
        """The element type of output number ``index``, or the one that ``set_output_type`` asked for.

        Raises:
            IndexError: there is no such output.
        """
        output = self._output(index)
        return self.hints.get(index) or data_type(output.type.dtype)

    def set_output_type(self, index: int, dtype: DataType) -> None:
        """Ask for the element type of an output, as scripts for TensorRT 10 do.

        Of an identity, a fill, a quantize or a dequantize it sets ``to_type``. Among floating-point types, and from
        them to INT8, it is recorded and changes nothing. Any other type is not taken, and the log says so.

        Raises:
            TypeError: it is no DataType.
            IndexError: there is no such output.
        """
        output, asked = self._output(index), check_data_type("dtype", dtype)
        own, advise = self._type_of(index), self.types.owner.advise
        if index == 0 and asked in self.OUTPUT_TYPES:
            setattr(self, TYPE_ATTRIBUTE, asked)
        elif own is not asked and {own, asked} <= COMPUTING:
            advise("set_output_type", "set_output_type changes nothing: a layer computes in the type of its inputs")
        elif own is not asked:
            what = (
                f"{output.name!r} stays {own and own.name}, as its layer does not convert to {asked.name}: use add_cast"
            )
            advise(f"set_output_type of {output.name}", what)
            return
        self.record(index, asked)

    def output_type_is_set(self, index: int) -> bool:
        """Whether ``set_output_type`` was called for an output, and the type taken."""
        return self._output(index).position in self.hints

    def reset_output_type(self, index: int) -> None:
        """Forget what ``set_output_type`` asked for."""
        is_usual = not self.output_type_is_set(index) or index > 0
        if not is_usual and self.OUTPUT_TYPES and hasattr(type(self), TYPE_ATTRIBUTE):
            setattr(self, TYPE_ATTRIBUTE, getattr(type(self), TYPE_ATTRIBUTE))
        self.record(index, None)

    def _output(self, index: int) -> ITensor:
        if not 0 <= index < len(self.outputs):
            raise IndexError(f"{type(self).__name__} has no output {index}")
        return self.outputs[index]
