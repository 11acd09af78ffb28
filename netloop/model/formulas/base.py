"""The base of all formulas: constants, compile-time values and element types."""

from typing import Any

import numpy as np

from netloop.model.graph.layer import ILayer
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.sources import IConstantLayer
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import LayerError, reason
from netloop.values.enums import DataType
from netloop.values.string_arrays import KINDS_OF_TEXT, string_array
from netloop.values.types import Array, data_type

Operand = ITensor | Array | np.generic | float | int | bool
"""A tensor, or numbers that become a constant."""

SMALL = 64
"""Constants of up to this many bytes are shared."""


def as_dtype(dtype: Any) -> DataType:
    """Return the TensorRT type of a numpy type.

    Raises:
        LayerError: networks have no such type.
    """
    try:
        return data_type(dtype)
    except ValueError as error:
        raise LayerError(str(error), reason("NL746"), "", "NL746") from None


def _strings(strings: Any) -> Array:
    """An array of strings.

    Raises:
        LayerError: an element is no str.
    """
    try:
        return string_array(strings)
    except ValueError as error:
        raise LayerError(f"the values are no strings: {error}", reason("NL746"), "", "NL746") from None


class FormulaBase:
    """A network and its constants."""

    def __init__(self, network: INetworkDefinition) -> None:
        self.network = network
        self._shared: dict[tuple[str, tuple[int, ...], bytes], ITensor] = {}
        self.bounds: dict[ITensor, ITensor] = {}
        """The trip counts of loops, by their counters, which stay below them; a negative one may mean any number."""
        self.read: set[ITensor] = set()
        """The tensors whose values were asked for, on which the layers may depend."""

    def constant(self, value: Any, dtype: Any = None) -> ITensor:
        """A constant with the shape of an array; Python numbers become int64 or float32, and texts strings."""
        array = np.asarray(value, dtype)
        if array.dtype.kind in KINDS_OF_TEXT:
            return self.network.add_constant(array.shape, np.ascontiguousarray(_strings(value))).outputs[0]
        if dtype is None and not isinstance(value, np.ndarray | np.generic) and array.dtype == np.float64:
            array = array.astype(np.float32)
        as_dtype(array.dtype)
        shape = array.shape
        array = np.ascontiguousarray(array)
        if array.nbytes > SMALL:
            return self.network.add_constant(shape, array).outputs[0]
        key = (array.dtype.name, shape, array.tobytes())
        if key not in self._shared:
            self._shared[key] = self.network.add_constant(shape, array).outputs[0]
        return self._shared[key]

    def known(self, x: Operand) -> Array | None:
        """The value of a small tensor that follows from constants and shapes only; None for any other."""
        if not isinstance(x, ITensor):
            return np.asarray(x)
        self.read.add(x)
        return x.type.value

    def ints(self, x: Operand) -> list[int] | None:
        """The same value as a flat list of ints."""
        value = self.known(x)
        return None if value is None else [int(other) for other in value.reshape(-1)]

    def long_ints(self, x: ITensor) -> list[int] | None:
        """The same for a constant of any length, which is not known as a value of many bytes."""
        layer = x.producer
        self.read.add(x)
        return layer.evaluate().reshape(-1).tolist() if isinstance(layer, IConstantLayer) else self.ints(x)

    def tensor(self, x: Operand, like: ITensor | None = None) -> ITensor:
        """``x`` itself if it is a tensor; otherwise a constant, of the element type of ``like`` if given."""
        return x if isinstance(x, ITensor) else self.constant(x, None if like is None else like.type.dtype)

    def tensors(self, *operands: Operand) -> list[ITensor]:
        """Operands as tensors; numbers take the element type of the first operand that is a tensor."""
        like = next((operand for operand in operands if isinstance(operand, ITensor)), None)
        return [self.tensor(operand, like) for operand in operands]

    def output(self, layer: ILayer) -> ITensor:
        """The first output of a layer; a constant instead if its value is known and not floating-point."""
        output = layer.outputs[0]
        if not output.type.is_known_integer:
            return output
        self.read.add(output)
        return self.constant(output.type.value)

    def cast(self, x: Operand, dtype: Any) -> ITensor:
        """Elements converted to another type; a tensor that has the type is returned as it is."""
        if not isinstance(x, ITensor):
            return self.constant(np.asarray(x).astype(dtype))
        if x.type.dtype == np.dtype(dtype):
            return x
        return self.output(self.network.add_cast(x, as_dtype(dtype)))

    def identity(self, x: ITensor) -> ITensor:
        """A new tensor with the same values."""
        return self.network.add_identity(x).outputs[0]
