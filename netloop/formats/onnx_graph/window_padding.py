"""The padding of sliding windows, as attributes or as a node of its own."""

from typing import Any

from netloop.formats.onnx_graph.graph import Value
from netloop.formats.onnx_graph.node_builder import NodeBuilder
from netloop.formats.shared.word_tables import AUTO_PADS
from netloop.model.layers.windows import SAME, SlidingWindow
from netloop.values.enums import PaddingMode
from netloop.values.types import UNKNOWN, Shape


def padding_attributes(layer: SlidingWindow, make: NodeBuilder) -> dict[str, Any] | None:
    """The padding as ONNX attributes; None if it depends on unknown lengths."""
    lengths = make.type(0).shape[-len(layer.window) :]
    if UNKNOWN not in lengths:
        before, after = _pads(layer, lengths)
        return {"pads": [*before, *after]}
    if layer.padding_mode in SAME and list(layer.spans) == list(layer.window):
        return {"auto_pad": AUTO_PADS.onnx.write[layer.padding_mode]}
    if layer.padding_mode is PaddingMode.EXPLICIT_ROUND_DOWN:
        return {"pads": [*layer.pre_padding, *layer.post_padding]}
    return None


def padded(layer: SlidingWindow, make: NodeBuilder, x: Value, value: Any) -> Value:
    """The input after a Pad node, whose widths may be computed."""
    padding = padding_attributes(layer, make)
    if padding is not None and "pads" in padding:
        pads: list[int] = padding["pads"]
        half = len(pads) // 2
        return make.op("Pad", x, make.int64s(0, 0, *pads[:half], 0, 0, *pads[half:]), make.number_like(value, x))
    before, after = _computed_pads(layer, make, x)
    none = make.int64s(0, 0)
    return make.op("Pad", x, make.concat([none, before, none, after], 0), make.number_like(value, x))


def _computed_pads(layer: SlidingWindow, make: NodeBuilder, x: Value) -> tuple[Value, Value]:
    """The widths before and after, from the shape of the input at run time."""
    lengths, spans, strides = make.shape(x, 2), make.int64s(*layer.spans), make.int64s(*layer.stride_nd)
    value = make.int64s(*layer.pre_padding)
    given_pads = [sum(entry) for entry in zip(layer.pre_padding, layer.post_padding, strict=True)]
    slack = make.op("Sub", make.op("Add", lengths, make.int64s(*given_pads)), spans)
    if layer.padding_mode in SAME:
        slack = make.op("Sub", lengths, make.int64s(1))
    rounded = make.op("Add", slack, make.int64s(*(0 if layer.padding_mode in SAME else n - 1 for n in layer.stride_nd)))
    reached = make.op("Add", make.op("Mul", make.op("Div", rounded, strides), strides), spans)
    total = make.op("Max", make.op("Sub", reached, lengths), make.int64s(0))
    if layer.padding_mode not in SAME:
        return value, make.op("Max", make.op("Sub", total, value), make.int64s(0))
    less = make.op("Div", total, make.int64s(2))
    more = make.op("Sub", total, less)
    return (less, more) if layer.padding_mode is PaddingMode.SAME_UPPER else (more, less)


def _pads(layer: SlidingWindow, lengths: Shape) -> tuple[list[int], list[int]]:
    """The widths before and after, for an input of known lengths."""
    places = layer.places(lengths)
    before = [place.before for place in places]
    if layer.padding_mode is PaddingMode.EXPLICIT_ROUND_DOWN:
        return before, list(layer.post_padding)
    windows = zip(lengths, layer.spans, layer.stride_nd, places, strict=True)
    after = [(places.length - 1) * stride + span - length - places.before for length, span, stride, places in windows]
    return before, [max(0, number) for number in after]
