"""Operators on strings of onnxruntime (com.microsoft)."""

from netloop.graph.tensor import ITensor
from netloop.onnx.importer.call import Call
from netloop.onnx.importer.operator_table import microsoft
from netloop.onnx.importer.operators.strings import texts_of


@microsoft("Tokenizer")
def tokenize(call: Call, x: ITensor) -> ITensor:
    """The tokens of strings."""
    separators, token = texts_of(call, "separators"), call.attribute("tokenexp")
    layer = call.make.network.add_string_tokenization(x, separators, token or None)
    layer.padding, layer.least_characters = call.attribute("pad_value"), call.attribute("mincharnum")
    layer.marks = bool(call.attribute("mark"))
    return layer.outputs[0]
