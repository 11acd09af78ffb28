"""The inputs of a model, as inputs of the network, and the notation of shapes in attributes."""

from netloop.formats.openvino.importer.model import XmlLayer, integer
from netloop.formats.openvino.importer.weights import element_type
from netloop.formats.shared.fixed_inputs import FixedInputs
from netloop.formats.shared.import_errors import present
from netloop.model.formulas import as_dtype
from netloop.model.graph.tensor import ITensor
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import LayerError, quoted
from netloop.values.types import UNKNOWN


def input_name(layer: XmlLayer) -> str:
    """The name of the input of a Parameter: its own, or the first of its tensor if the former is not among those."""
    port = layer.outputs[0]
    return layer.name if layer.name in port.names or not port.names else port.names[0]


def add_input(network: INetworkDefinition, layer: XmlLayer, fixed: FixedInputs) -> ITensor:
    """Add the input of a Parameter, or the constant to which it is fixed.

    Raises:
        LayerError: its element type is not supported, or its rank not known.
        InputError: the value to which it is fixed does not fit.
    """
    port, name = layer.outputs[0], input_name(layer)
    if name in fixed:
        dtype = element_type(layer.data.get("element_type", port.precision))
        return fixed.add(network, name, dtype, declared_shape(layer))
    fix = "reshape the model in OpenVINO, with '?' for axes whose length varies between calls"
    shape = present(declared_shape(layer), f"the model does not declare the rank of {quoted(name)}", fix=fix)
    dtype = as_dtype(element_type(layer.data.get("element_type", port.precision)))
    return network.add_input(name, dtype, shape)


def declared_shape(layer: XmlLayer) -> tuple[int, ...] | None:
    """The shape of a Parameter or Const; None if its rank is unknown."""
    text = layer.data.get("shape")
    return layer.outputs[0].dims if text is None else shape_of(text)


def shape_of(text: str) -> tuple[int, ...] | None:
    """Parse a shape such as ``2,?,1..4``: -1 for each open length, None for ``...``.

    Raises:
        LayerError: a length is not valid.
    """
    if text.strip() == "...":
        return None
    return tuple(_length(word.strip()) for word in text.strip(" []{}").split(",")) if text.strip(" []{}") else ()


def _length(text: str) -> int:
    if text in ("?", "-1") or ".." in text:
        return UNKNOWN
    try:
        length = integer(text)
    except ValueError:
        length = -1
    if length < 0:
        raise LayerError(f"the shape has the length {quoted(text)}")
    return length
