"""Operators on strings of onnxruntime (com.microsoft)."""

from netloop.formats.onnx.importer.operators.microsoft import NodeCall, microsoft
from netloop.formats.onnx.importer.operators.strings import texts_of
from netloop.model.graph.tensor import ITensor
from netloop.values.string_arrays import string_array


@microsoft("Tokenizer")
def tokenize(call: NodeCall, x: ITensor) -> ITensor:
    """The tokens of strings."""
    separators, token = texts_of(call, "separators"), call.attribute("tokenexp")
    if token == ".":  # a line break, which the pattern does not match, is a token too
        separators, token = string_array([""]), None
    layer = call.make.network.add_string_tokenization(x, separators, token if separators is None else None)
    layer.padding, layer.least_characters = call.attribute("pad_value"), call.attribute("mincharnum")
    layer.marks = call.flag("mark")
    return layer.outputs[0]
