"""Inputs of a model that its importer fixes to values."""

from collections.abc import Collection, Mapping
from typing import Any, cast

import numpy as np

from netloop.formats.shared.importer import name_tensor
from netloop.model.graph.tensor import ITensor
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import Finding, InputError, did_you_mean, listed, quoted, reason
from netloop.values.types import Array, Shape, TensorType, agree

WHERE = "the argument inputs"


class FixedInputs:
    """Values for some inputs of a model, by name: those inputs become constants.

    A Python number or a list of numbers takes the element type of its input, if that has all of them; an array must
    have it.

    Raises:
        TypeError: the values are not a dict from names to values.
    """

    def __init__(self, shapes: Mapping[str, Any] | None) -> None:
        values: Any = {} if shapes is None else shapes
        if not isinstance(values, Mapping) or not all(isinstance(value, str) for value in cast(Any, values)):
            raise TypeError(f"inputs are a dict from names to values, not {quoted(values)}")
        self._values = cast(Mapping[str, Any], values)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def check_names(self, names: Collection[str]) -> None:
        """Check that all values are for inputs of the model, which are ``names``.

        Raises:
            InputError: some are not.
        """
        has = listed(sorted(names)) or "none"
        findings = [
            Finding(
                "NL602", f"the model has no input {quoted(value)}; it has {has}", WHERE, fix=did_you_mean(value, names)
            )
            for value in self._values
            if value not in names
        ]
        if findings:
            raise InputError(*findings)

    def add(self, network: INetworkDefinition, name: str, dtype: np.dtype[Any], shape: Shape | None) -> ITensor:
        """Add the constant that replaces an input of an element type and a shape, None for any shape.

        Raises:
            InputError: the value does not fit.
        """
        array = self._array(name, dtype, shape)
        layer = network.add_constant(array.shape, array)
        layer.name, layer.metadata = name, f"[Fixed Input: {name}]"
        return name_tensor(layer.outputs[0], name)

    def _array(self, name: str, dtype: np.dtype[Any], shape: Shape | None) -> Array:
        value = self._values[name]
        try:
            array = np.asarray(value)
        except (TypeError, ValueError) as error:
            what = f"the value for input {quoted(name)} is {type(value).__name__}, not an array"
            raise InputError(Finding("NL603", what, WHERE, str(error))) from error
        if not hasattr(value, "dtype"):
            array = _converted(array, dtype)
        if array.dtype != dtype or not (shape is None or agree(array.shape, shape)):
            wanted = TensorType(dtype, shape) if shape is not None else dtype
            what = f"input {quoted(name)} is {wanted}, and its value is {_described(array)}"
            fix = f"pass an array of dtype {dtype}" if array.dtype != dtype else ""
            raise InputError(Finding("NL603", what, WHERE, reason("NL603"), fix))
        return array


def _converted(numbers: Array, dtype: np.dtype[Any]) -> Array:
    """Python numbers in an element type, if that has all of them: floats are rounded, and integers are not."""
    if numbers.dtype.kind not in "if" or dtype == np.bool_ or (numbers.dtype.kind == "f" and dtype.kind in "iu"):
        return numbers
    with np.errstate(all="ignore"):
        array = numbers.astype(dtype)
    return array if numbers.dtype.kind == "f" or np.array_equal(array.astype(numbers.dtype), numbers) else numbers


def _described(array: Array) -> str:
    return str(TensorType(array.dtype, array.shape)) if array.dtype.kind not in "OUS" else str(array.dtype)
