"""Operators on strings."""

from typing import Any

from netloop.formats.onnx.importer.operators import NodeCall, operator
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.enums import StringCase
from netloop.values.string_arrays import string_array
from netloop.values.types import Array

CASES = {"NONE": StringCase.NONE, "LOWER": StringCase.LOWER, "UPPER": StringCase.UPPER}


def texts_of(call: NodeCall, name: str) -> Array | None:
    """An attribute that is a list of strings; None if it is left out."""
    result: Any = call.attribute(name)
    return None if result is None else string_array(result)


@operator("StringConcat", since=20)
def concatenate(call: NodeCall, a: ITensor, b: ITensor) -> ITensor:
    """The strings of two tensors, one after the other."""
    a, b = call.make.aligned(a, b)
    return call.make.network.add_string_concatenation(a, b).outputs[0]


@operator("StringSplit", since=20)
def split(call: NodeCall, x: ITensor) -> list[ITensor]:
    """The parts of strings between delimiters, and their numbers."""
    delimiter, most = call.attribute("delimiter", ""), call.attribute("maxsplit")
    return [*call.make.network.add_string_split(x, delimiter, most).outputs]


@operator("StringNormalizer", since=10)
def normalize(call: NodeCall, x: ITensor) -> ITensor:
    """Strings in one case, without stop words."""
    case, is_case_sensitive = call.choice("case_change_action", CASES), call.flag("is_case_sensitive")
    network, stopwords = call.make.network, texts_of(call, "stopwords")
    return network.add_string_normalization(x, case, stopwords, is_case_sensitive).outputs[0]


@operator("RegexFullMatch", since=20)
def match(call: NodeCall, x: ITensor) -> ITensor:
    """Whether a regular expression matches whole strings."""
    pattern = call.attribute("pattern")
    require(pattern is not None, "the attribute 'pattern' is missing")
    return call.make.network.add_string_match(x, pattern).outputs[0]
