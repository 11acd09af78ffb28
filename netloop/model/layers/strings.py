"""Operations on strings: netloop extensions, computed on the host."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from netloop.model.graph import ITensor, NetworkBase, Operation, layer
from netloop.model.layers.regular_expressions import regular_expression
from netloop.model.layers.sequence import HostOperation
from netloop.values.diagnostics import quoted, require
from netloop.values.dims import check_order
from netloop.values.enums import LayerType, StringCase
from netloop.values.string_arrays import STRING, string_array
from netloop.values.types import UNKNOWN, Array, TensorType, broadcast

INT64 = np.dtype(np.int64)
T = TypeVar("T")


class StringOperation(HostOperation):
    """Base class of operations on tensors of strings."""

    TENSORS_ONLY = True
    BEYOND = "is a netloop extension for strings"


def _require_strings(*inputs: TensorType) -> None:
    for position, tensor_type in enumerate(inputs):
        require(
            tensor_type.is_string,
            f"input {position} is {tensor_type}, but must be of strings",
            fix="convert it with add_cast",
        )


def _require_list(name: str, array: Array) -> None:
    fits = array.dtype == STRING and array.ndim == 1
    require(
        fits,
        f"{name} is {TensorType(array.dtype, array.shape)}, but must be a list of strings",
        why="each string is an entry of a table",
    )


def _mapped(x: Array, function: Callable[[str], Any]) -> list[Any]:
    return [function(number) for number in x.reshape(-1).tolist()]


def _padded(rows: Sequence[Sequence[str]], shape: tuple[int, ...], padding: str = "") -> Array:
    """Rows of strings as the last axis of a tensor, whose other dims are ``shape``."""
    most = max(map(len, rows), default=0)
    texts = [[*row, *[padding] * (most - len(row))] for row in rows]
    return np.array(texts, STRING).reshape(*shape, most)


_TABLES: "WeakKeyDictionary[Operation, tuple[tuple[Any, ...], Any]]" = WeakKeyDictionary()


def _table(layer: Operation, table: Callable[[], T], *attributes: Any) -> T:
    """A table that follows from attributes of a layer, made once for the same ones: it may have a million words.

    The reference does without, so that it sees what is written into their arrays.
    """
    kept = _TABLES.get(layer)
    if kept is None or any(one is not other for one, other in zip(kept[0], attributes, strict=True)):
        kept = _TABLES[layer] = attributes, table()
    return kept[1]


@layer(LayerType.STRING_LOOKUP, "StringLookup")
class IStringLookupLayer(StringOperation):
    """The position of each string in a vocabulary, and the length of the vocabulary for a string that is not in it.

    Input of any shape, output int64 of the same shape. If a string is in the vocabulary twice, its first position.

    Attributes:
        vocabulary: the strings, 1-D.
    """

    vocabulary: Array

    def infer(self, x: TensorType) -> TensorType:
        _require_strings(x)
        _require_list("vocabulary", self.vocabulary)
        return x.with_dtype(INT64)

    def evaluate(self, x: Array) -> Array:
        return self._looked_up(x, self._positions())

    def host_value(self, x: Array) -> Array:
        return self._looked_up(x, _table(self, self._positions, self.vocabulary))

    def _positions(self) -> dict[str, int]:
        return {word: position for position, word in reversed([*enumerate(self.vocabulary.tolist())])}

    def _looked_up(self, x: Array, positions: dict[str, int]) -> Array:
        count = len(self.vocabulary)
        return np.array(_mapped(x, lambda text: positions.get(text, count)), INT64).reshape(x.shape)


@layer(LayerType.STRING_CONCATENATION, "StringConcatenation")
class IStringConcatenationLayer(StringOperation):
    """Concatenate the strings of two tensors element by element; axes of length 1 are broadcast.

    Both inputs have the same rank. Source: ONNX's StringConcat.
    """

    REQUIRED_INPUTS = 2

    def infer(self, a: TensorType, b: TensorType) -> TensorType:
        _require_strings(a, b)
        return TensorType(STRING, broadcast(a.shape, b.shape))

    def evaluate(self, a: Array, b: Array) -> Array:
        return np.asarray(a + b, STRING)


@layer(LayerType.STRING_SPLIT, "StringSplit")
class IStringSplitLayer(StringOperation):
    """Split each string into parts, along a new last axis that is as long as the most parts, padded by empty strings.

    Output 1 is the number of parts of each string, int64. Without a delimiter the strings are split at white space, and
    an empty string has no parts. Source: ONNX's StringSplit.

    Attributes:
        delimiter: the text between parts; "" for any white space, also at the ends.
        max_splits: the most splits, after which the rest of a string is its last part; None for any number.
    """

    NUM_OUTPUTS = 2

    delimiter: str = ""
    max_splits: int | None = None

    def infer(self, x: TensorType) -> tuple[TensorType, TensorType]:
        _require_strings(x)
        most = self.max_splits
        require(
            most is None or most >= 0, f"max_splits is {most}, but must not be negative", why="it is a number of splits"
        )
        return x.with_shape((*x.shape, UNKNOWN)), x.with_dtype(INT64)

    def evaluate(self, x: Array) -> tuple[Array, Array]:
        most = -1 if self.max_splits is None else self.max_splits
        rows = _mapped(x, lambda text: text.split(self.delimiter or None, most) if text else [])
        return _padded(rows, x.shape), np.array([len(row) for row in rows], INT64).reshape(x.shape)


def _in_case(text: str, case: StringCase) -> str:
    """A text in a case, in which each character has one: ß stays as it is."""
    if case is StringCase.NONE:
        return text
    if text.isascii():
        return text.lower() if case is StringCase.LOWER else text.upper()
    if case is StringCase.LOWER:
        return "".join(character.lower()[0] for character in text)
    return "".join(new if len(new) == 1 else old for old, new in zip(text, map(str.upper, text), strict=True))


@layer(LayerType.STRING_NORMALIZATION, "StringNormalization")
class IStringNormalizationLayer(StringOperation):
    """Remove stop words, and change the case of all others.

    Input [n] or [1, n]; if all of it is removed, the output is one empty string. Source: ONNX's StringNormalizer.

    Attributes:
        case: NONE, LOWER or UPPER; each character becomes one character, whatever the language.
        stopwords: the strings to be removed, 1-D; None for none.
        is_case_sensitive: whether a stop word must have the case of the input.
    """

    case: StringCase = StringCase.NONE
    stopwords: Array | None = None
    is_case_sensitive: bool = True

    def infer(self, x: TensorType) -> TensorType:
        _require_strings(x)
        fits = x.rank == 1 or (x.rank == 2 and x.shape[0] in (1, UNKNOWN))
        require(
            fits,
            f"the input is {x}, but must be a string[n] or string[1,n]",
            why="the words are in one list, or in one row",
        )
        if self.stopwords is None or not self.stopwords.size:
            return x.without_value()
        _require_list("stopwords", self.stopwords)
        return x.with_shape((*x.shape[:-1], UNKNOWN))

    def evaluate(self, x: Array) -> Array:
        self.infer(TensorType(x.dtype, x.shape))
        words: list[str] = x.reshape(-1).tolist()
        if self.stopwords is not None and self.stopwords.size:
            compared = StringCase.NONE if self.is_case_sensitive else StringCase.LOWER
            removed = {_in_case(number, compared) for number in self.stopwords.tolist()}
            words = [word for word in words if _in_case(word, compared) not in removed] or [""]
        cased = [_in_case(word, self.case) for word in words]
        return np.array(cased, STRING).reshape(*x.shape[:-1], len(cased))


@layer(LayerType.STRING_MATCH, "StringMatch")
class IStringMatchLayer(StringOperation):
    """Whether a regular expression matches each whole string; bool. Source: ONNX's RegexFullMatch.

    Attributes:
        pattern: the regular expression, in the syntax of RE2; see ``netloop/model/layers/regular_expressions.py``.
    """

    pattern: str

    def infer(self, x: TensorType) -> TensorType:
        _require_strings(x)
        regular_expression(self.pattern)
        return x.with_dtype(np.bool_)

    def evaluate(self, x: Array) -> Array:
        return np.array(_mapped(x, regular_expression(self.pattern).full_match), np.bool_).reshape(x.shape)


@layer(LayerType.STRING_TOKENIZATION, "StringTokenization")
class IStringTokenizationLayer(StringOperation):
    """Split each string into tokens, along a new last axis that is as long as the most tokens.

    Input [n] or [b, n]. Tokens are the matches of ``token``, or the parts between matches of the separators, one of
    which is applied after the other. Matches are as long as possible. Source: onnxruntime's Tokenizer.

    Attributes:
        separators: the regular expressions of separators, 1-D; one empty string separates all characters.
        token: the regular expression of a token, instead of separators.
        padding: the string after the last token.
        least_characters: the length of the shortest tokens that are kept.
        marks: whether the tokens of a string begin with U+0002 and end with U+0003, unless no string has a token.
    """

    separators: Array | None = None
    token: str | None = None
    padding: str = ""
    least_characters: int = 1
    marks: bool = False

    def infer(self, x: TensorType) -> TensorType:
        _require_strings(x)
        require(
            x.rank in (1, 2),
            f"the input is {x}, but must be a string[n] or string[b,n]",
            why="each string, or each string of a row, is cut into tokens",
        )
        require(
            (self.separators is None) != (self.token is None),
            "either separators or token must be given",
            why="a text is cut at separators, or into what a token matches",
        )
        if self.token is not None:
            regular_expression(self.token)
        if self.separators is not None:
            _require_list("separators", self.separators)
        for separator in self._separators() if self._separators() != [""] else []:
            is_text = not regular_expression(separator).full_match("")
            require(
                is_text,
                f"the separator {quoted(separator)} matches an empty string",
                why="a text could be cut there without end",
            )
        return x.with_shape((*x.shape, UNKNOWN))

    def evaluate(self, x: Array) -> Array:
        rows = [[value for value in row if len(value) >= self.least_characters] for row in _mapped(x, self._tokens)]
        if self.marks and any(rows):
            rows = [["\2", *row, "\3"] for row in rows]
        return _padded(rows, x.shape, self.padding)

    def _separators(self) -> list[str]:
        return [] if self.separators is None else self.separators.tolist()

    def _tokens(self, text: str) -> list[str]:
        if self.token is not None:
            return [text[start:end] for start, end in regular_expression(self.token).matches(text)]
        separators = self._separators()
        if separators == [""]:
            return list(text)
        parts = [text]
        for separator in separators:
            parts = [part for whole in parts for part in _between(whole, separator)]
        return parts


def _between(text: str, separator: str) -> Iterator[str]:
    """The parts of a text between separators."""
    places = regular_expression(separator).matches(text)
    ends = [0, *chain.from_iterable(places), len(text)]
    return (text[start:end] for start, end in zip(ends[::2], ends[1::2], strict=True))


@layer(LayerType.STRING_NGRAMS, "StringNgrams")
class IStringNgramsLayer(StringOperation):
    """The number of occurrences of each n-gram of a pool: n strings of the last axis, adjacent or equally spaced.

    Input [t] or [b, t], output int64 with the counts of g n-grams instead of the last axis. A single string occurs
    once wherever it is, whatever may be skipped. Source: ONNX's TfIdfVectorizer.

    Attributes:
        pool: the strings of all n-grams, those of length 1 first, 1-D.
        starts: the position in the pool at which n-grams of length 1, 2, 3, ... begin; int64, 1-D.
        least, most: the range of lengths that are counted; all others occur 0 times.
        most_skips: the most strings between neighbours of an n-gram.
    """

    pool: Array
    starts: Array
    least: int = 1
    most: int = 1
    most_skips: int = 0

    def infer(self, x: TensorType) -> TensorType:
        _require_strings(x)
        require(
            x.rank in (1, 2),
            f"the input is {x}, but must be a string[t] or string[b,t]",
            why="n-grams are counted in one list of words, or in each row",
        )
        require(
            self.most_skips >= 0,
            f"most_skips is {self.most_skips}, but must not be negative",
            why="it is a number of words",
        )
        count = sum((end - start) // length for length, start, end in self._ranges())
        return TensorType(INT64, (*x.shape[:-1], count))

    def _ranges(self) -> Iterator[tuple[int, int, int]]:
        """Each length of n-grams, and the range of the pool that has them."""
        _require_list("pool", self.pool)
        count = len(self.pool)
        fits = self.starts.ndim == 1 and self.starts.dtype == INT64
        require(
            fits,
            f"starts is {TensorType.of(self.starts)}, but must be int64 and 1-D",
            why="it divides the pool into n-grams of each length",
        )
        bounds: list[int] = [*self.starts.tolist(), count]
        fits = bounds == sorted(bounds) and bounds[0] == 0
        require(
            fits,
            f"starts is {bounds[:-1]}, but must rise from 0 to the {count} strings of the pool",
            why="it divides the pool into n-grams of each length",
        )
        for length, (start, end) in enumerate(pairwise(bounds), 1):
            require(
                (end - start) % length == 0,
                f"{end - start} strings of the pool do not divide into {length}-grams",
                why="each n-gram has as many strings as its length",
            )
            yield length, start, end

    def evaluate(self, x: Array) -> Array:
        return self._counts(x, self._columns())

    def host_value(self, x: Array) -> Array:
        return self._counts(x, _table(self, self._columns, self.pool, self.starts, self.least, self.most))

    def _counts(self, x: Array, table: tuple[dict[tuple[str, ...], list[int]], int]) -> Array:
        columns, count = table
        lengths = {len(column) for column in columns}
        rows: list[list[str]] = [x.tolist()] if x.ndim == 1 else x.tolist()
        places: list[int] = []
        for number, row in enumerate(rows):
            for gram in chain.from_iterable([self._occurrences(row, length) for length in lengths]):
                # most words of a text are in no pool
                if gram in columns:
                    places += [count * number + column for column in columns[gram]]
        return np.bincount(places, minlength=count * len(rows)).reshape(*x.shape[:-1], count)

    def _columns(self) -> tuple[dict[tuple[str, ...], list[int]], int]:
        """The columns of each n-gram that is counted, and the number of all n-grams."""
        pool: list[str] = self.pool.tolist()
        columns: dict[tuple[str, ...], list[int]] = {}
        number = 0
        for length, start, end in self._ranges():
            for first in range(start, end, length):
                if self.least <= length <= self.most:
                    columns.setdefault(tuple(pool[first : first + length]), []).append(number)
                number += 1
        return columns, number

    def _occurrences(self, row: Sequence[str], length: int) -> Iterator[tuple[str, ...]]:
        for step in range(1, 2 + (self.most_skips if length > 1 else 0)):
            if (length - 1) * step >= len(row):
                return
            yield from zip(*(row[place * step :] for place in range(length)), strict=False)


class StringMethods(NetworkBase):
    """The ``add_`` methods of this family."""

    FAMILY = "strings"

    def add_string_lookup(self, input: ITensor, vocabulary: Sequence[str] | Array) -> IStringLookupLayer:
        """Add the positions of strings in a vocabulary; its length for those not in it. A netloop extension.

        Input of any shape, output int64 of the same shape. If a string is in the vocabulary twice, its first
        position.

        Args:
            input: the input.
            vocabulary: the strings, 1-D.
        """
        return self.add(IStringLookupLayer(vocabulary=_strings(vocabulary, "vocabulary")), input=input)

    def add_string_concatenation(self, input1: ITensor, input2: ITensor) -> IStringConcatenationLayer:
        """Add the concatenation of strings, element by element; a netloop extension.

        Both inputs have the same rank. Source: ONNX's StringConcat.

        Args:
            input1: input 0.
            input2: input 1.
        """
        return self.add(IStringConcatenationLayer(), input1=input1, input2=input2)

    def add_string_split(self, input: ITensor, delimiter: str = "", max_splits: int | None = None) -> IStringSplitLayer:
        """Add the parts of strings between delimiters, or white space, and their numbers; a netloop extension.

        Output 1 is the number of parts of each string, int64. Without a delimiter the strings are split at white
        space, and an empty string has no parts. Source: ONNX's StringSplit.

        Args:
            input: the input.
            delimiter: the text between parts; "" for any white space, also at the ends.
            max_splits: the most splits, after which the rest of a string is its last part; None for any number.
        """
        return self.add(IStringSplitLayer(delimiter=delimiter, max_splits=max_splits), input=input)

    def add_string_normalization(
        self,
        input: ITensor,
        case: StringCase = StringCase.NONE,
        stopwords: Sequence[str] | Array | None = None,
        is_case_sensitive: bool = True,
    ) -> IStringNormalizationLayer:
        """Add the removal of stop words and a change of case; a netloop extension.

        Input [n] or [1, n]; if all of it is removed, the output is one empty string. Source: ONNX's
        StringNormalizer.

        Args:
            input: the input.
            case: NONE, LOWER or UPPER; each character becomes one character, whatever the language.
            stopwords: the strings to be removed, 1-D; None for none.
            is_case_sensitive: whether a stop word must have the case of the input.
        """
        removed = None if stopwords is None else _strings(stopwords, "stopwords")
        result = IStringNormalizationLayer(case=case, stopwords=removed, is_case_sensitive=is_case_sensitive)
        return self.add(result, input=input)

    def add_string_match(self, input: ITensor, pattern: str) -> IStringMatchLayer:
        """Add the test whether a regular expression, in the syntax of RE2, matches strings; a netloop extension.

        Args:
            input: the input.
            pattern: the regular expression, in the syntax of RE2; see ``netloop/model/layers/regular_expressions.py``.
        """
        return self.add(IStringMatchLayer(pattern=pattern), input=input)

    def add_string_tokenization(
        self, input: ITensor, separators: Sequence[str] | Array | None = None, token: str | None = None
    ) -> IStringTokenizationLayer:
        """Add the tokens of strings: parts between separators, or matches of ``token``; a netloop extension.

        Input [n] or [b, n]. Tokens are the matches of ``token``, or the parts between matches of the separators, one
        of which is applied after the other. Matches are as long as possible. Source: onnxruntime's Tokenizer.

        Args:
            input: the input.
            separators: the regular expressions of separators, 1-D; one empty string separates all characters.
            token: the regular expression of a token, instead of separators.

        Further attributes of the layer, which have defaults: ``padding``, ``least_characters``, ``marks``.
        """
        listed = None if separators is None else _strings(separators, "separators")
        return self.add(IStringTokenizationLayer(separators=listed, token=token), input=input)

    def add_string_ngrams(
        self, input: ITensor, pool: Sequence[str] | Array, starts: Sequence[int]
    ) -> IStringNgramsLayer:
        """Add the number of occurrences of n-grams; those of length n begin at ``starts[n - 1]`` of the pool. A netloop
        extension.

        Input [t] or [b, t], output int64 with the counts of g n-grams instead of the last axis. A single string
        occurs once wherever it is, whatever may be skipped. Source: ONNX's TfIdfVectorizer.

        Args:
            input: the input.
            pool: the strings of all n-grams, those of length 1 first, 1-D.
            starts: the position in the pool at which n-grams of length 1, 2, 3, ... begin; int64, 1-D.

        Further attributes of the layer, which have defaults: ``least``, ``most``, ``most_skips``.
        """
        begins = np.array(check_order("starts", starts), INT64)
        result = IStringNgramsLayer(pool=_strings(pool, "pool"), starts=begins, most=max(1, len(begins)))
        return self.add(result, input=input)


def _strings(strings: Any, name: str) -> Array:
    """A list of strings as an array.

    Raises:
        TypeError: it has other elements.
    """
    if not isinstance(strings, list | tuple | np.ndarray):
        raise TypeError(f"{name} must be a list of strings, not {type(strings).__name__}")
    try:
        return string_array(strings)
    except ValueError as error:
        raise TypeError(f"{name} must be a list of strings: {error}") from None
