"""Operations on strings."""

from typing import Any

import numpy as np

from netloop.formats.onnx_graph.layers import BOOL, FLOAT, INT64, NodeBuilder, Value, exports
from netloop.model.layers.strings import (
    IStringConcatenationLayer,
    IStringLookupLayer,
    IStringMatchLayer,
    IStringNgramsLayer,
    IStringNormalizationLayer,
    IStringSplitLayer,
    IStringTokenizationLayer,
)
from netloop.values.diagnostics import require
from netloop.values.string_arrays import STRING


@exports(IStringConcatenationLayer)
def concatenation(layer: IStringConcatenationLayer, make: NodeBuilder, a: Value, b: Value) -> Value:
    return make.op("StringConcat", a, b)


@exports(IStringSplitLayer)
def split(layer: IStringSplitLayer, make: NodeBuilder, x: Value) -> tuple[Value, Value]:
    result = Value(STRING), Value(INT64)
    make.node("StringSplit", [x], result, delimiter=layer.delimiter or None, maxsplit=layer.max_splits)
    return result


@exports(IStringNormalizationLayer)
def normalization(layer: IStringNormalizationLayer, make: NodeBuilder, x: Value) -> Value:
    removed: Any = None if layer.stopwords is None else layer.stopwords.tolist() or None
    sensitive, case = int(layer.is_case_sensitive), layer.case.name
    return make.op("StringNormalizer", x, case_change_action=case, is_case_sensitive=sensitive, stopwords=removed)


@exports(IStringMatchLayer)
def match(layer: IStringMatchLayer, make: NodeBuilder, x: Value) -> Value:
    return make.op("RegexFullMatch", x, to=BOOL, pattern=layer.pattern)


@exports(IStringLookupLayer)
def lookup(layer: IStringLookupLayer, make: NodeBuilder, x: Value) -> Value:
    """The first of the comparisons with each word that holds, and of one that always does."""
    rank, count = make.type(0).rank, layer.vocabulary.size
    same = make.compare("Equal", make.expand_dims(x, [rank]), make.constant(layer.vocabulary))
    shape = make.concat([make.shape(x), make.int64s(1)], 0)
    always = make.op("Expand", make.constant(np.ones([1] * (rank + 1), np.bool_)), shape)
    value = make.concat([same, always], rank) if count else always
    return make.op("ArgMax", make.cast(value, FLOAT), to=INT64, axis=rank, keepdims=0)


@exports(IStringNgramsLayer)
def ngrams(layer: IStringNgramsLayer, make: NodeBuilder, x: Value) -> Value:
    count = make.out().shape[-1]
    require(count > 0, f"{layer.name!r} counts no n-grams", "ONNX's TfIdfVectorizer needs some")
    counted = make.op(
        "TfIdfVectorizer",
        x,
        to=FLOAT,
        mode="TF",
        min_gram_length=layer.least,
        max_gram_length=layer.most,
        max_skip_count=layer.most_skips,
        ngram_counts=layer.starts.tolist(),
        ngram_indexes=list(range(count)),
        pool_strings=layer.pool.tolist(),
    )
    return make.cast(counted, INT64)


@exports(IStringTokenizationLayer)
def tokenization(layer: IStringTokenizationLayer, make: NodeBuilder, x: Value) -> Value:
    require(False, "ONNX has no operator for tokens", "the one of onnxruntime is not part of the standard")
    return x
