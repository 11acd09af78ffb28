"""Reading of untrusted JSON: each value has the expected form, or is refused with its path in the document."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import Any, NoReturn, TypeVar

from netloop.values.checked_attributes import is_encodable
from netloop.values.diagnostics import FileFormatError, Finding, did_you_mean, listed, quoted

T = TypeVar("T")
E = TypeVar("E", bound=Enum)

LEAST, MOST = -(2**63), 2**63 - 1
"""The range of whole numbers, which have 64 bits."""

MOST_DIGITS = 20
DEEPEST = 16
"""The deepest nesting of lists and objects that is accepted; plans use half of it."""

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def to_json(value: Any) -> bytes:
    """Encode a value as JSON; equal values with keys in the same order give the same bytes."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode("ascii")


def from_json(data: bytes, name: str) -> JsonValue:
    """Decode the document ``name``.

    Raises:
        FileFormatError: it is not JSON, is nested too deeply, has a duplicate key, or a number that is too long.
    """
    # Before json.loads, which recurses once per level and would use up Python's stack.
    if _is_deep(data):
        raise _refusal(f"the document has more than {DEEPEST} nested lists and objects, or unclosed ones", name)
    try:
        value = json.loads(
            data.decode(), parse_int=_whole, parse_constant=_no_number, object_pairs_hook=_without_duplicates
        )
    except RecursionError:
        raise _refusal("the document is nested deeper than Python's stack allows", name) from None
    except ValueError as error:
        raise _refusal(f"the document is not the JSON of a plan: {error}", name) from None
    return JsonValue(value, name)


def _is_deep(data: bytes) -> bool:
    """Whether brackets are nested too deeply or unbalanced, found without the recursion of the decoder."""
    brackets = _STRING.sub(b"", data).translate(_BRACKETS, _NO_BRACKETS)
    for _ in range(DEEPEST):
        brackets = brackets.replace(b"[]", b"")
    return bool(brackets)


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"a whole number has {len(digits)} characters")
    return int(digits)


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number in JSON")


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    results = dict(pairs)
    if len(results) != len(pairs):
        raise ValueError("an object has a duplicate key")
    return results


def _refusal(what: str, where: str, why: str = "") -> FileFormatError:
    return FileFormatError(Finding("NL713", what, where, why or "netloop does not write such plans"))


class JsonValue:
    """A value in a document, and its path.

    Attributes:
        value: the decoded value.
    """

    __slots__ = ("_key", "_parent", "value")

    def __init__(self, value: Any, key: str | int, parent: JsonValue | None = None) -> None:
        self.value = value
        self._key = key
        self._parent = parent

    @property
    def where(self) -> str:
        """The path, such as ``network.json: layers[3].inputs``."""
        keys: list[str | int] = []
        node = self
        while node._parent is not None:
            keys.append(node._key)
            node = node._parent
        steps = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in reversed(keys))
        path = "".join(steps).removeprefix(".")
        return f"{node._key}: {path}" if path else str(node._key)

    def refuse(self, what: str, why: str = "") -> NoReturn:
        """Raise an error about this value.

        Raises:
            FileFormatError: always.
        """
        raise _refusal(what, self.where, why)

    # ------------------------------------------------------------------ expected forms

    def text(self) -> str:
        """A string that UTF-8 can encode."""
        result = self.any_text()
        if not is_encodable(result):
            self.refuse(f"the string {quoted(result)} has half of a surrogate pair in it", "UTF-8 cannot encode it")
        return result

    def any_text(self) -> str:
        """A string, also one that UTF-8 cannot encode: the name of a file may have any bytes."""
        return self.value if isinstance(self.value, str) else self._unlike("a string")

    def flag(self) -> bool:
        """True or false."""
        return self.value if isinstance(self.value, bool) else self._unlike("true or false")

    def whole(self, least: int = LEAST, most: int = MOST) -> int:
        """A whole number from ``least`` to ``most``."""
        if type(self.value) is not int:
            self._unlike("a whole number")
        if not least <= self.value <= most:
            self.refuse(f"expected a number from {least} to {most}, found {self.value}")
        return self.value

    def number(self) -> float:
        """A floating-point number; the strings nan, inf and -inf stand for those that JSON lacks."""
        if self.value in ("nan", "inf", "-inf"):
            return float(self.value)
        if type(self.value) is not float or not math.isfinite(self.value):
            self._unlike("a number with a point")
        return self.value

    def member(self, enum: type[E]) -> E:
        """A member of an enumeration, by its name."""
        return self.one_of(enum.__members__, f"the name of a {enum.__name__}")

    def one_of(self, choices: Mapping[str, T], what: str) -> T:
        """One of the values of ``choices``, by its name."""
        name = self.text()
        if name not in choices:
            hint = did_you_mean(name, choices)
            self.refuse(f"expected {what}, found {_shown(name)}{hint and f'; {hint}'}")
        return choices[name]

    def numbered(self, items: Sequence[T], what: str) -> T:
        """One of ``items``, by its index."""
        number = self.whole()
        if not 0 <= number < len(items):
            self.refuse(f"expected the index of {what}, of which there are {len(items)}, found {number}")
        return items[number]

    def items(self) -> list[JsonValue]:
        """The elements of a list."""
        if not isinstance(self.value, list):
            self._unlike("a list")
        return [JsonValue(element, position, self) for position, element in enumerate(self.value)]

    def pair(self) -> list[JsonValue]:
        """The elements of a list of two."""
        items = self.items()
        if len(items) != 2:
            self.refuse(f"expected a list of 2 elements, found {len(items)}")
        return items

    def fields(self, required: Collection[str], optional: Collection[str] = ()) -> dict[str, JsonValue]:
        """The values of an object, which has all required keys, and otherwise only optional ones."""
        if not isinstance(self.value, dict):
            self._unlike("an object")
        missing = [key for key in required if key not in self.value]
        unknown = [key for key in self.value if key not in required and key not in optional]
        if missing or unknown:
            lacks = [f"lacks {listed(missing)}"] if missing else []
            has = [f"has unknown keys {listed(unknown)}"] if unknown else []
            self.refuse(f"the object {' and '.join(lacks + has)}")
        return {key: JsonValue(value, key, self) for key, value in self.value.items()}

    def _unlike(self, wanted: str) -> NoReturn:
        self.refuse(f"expected {wanted}, found {_shown(self.value)}")


def _shown(value: Any) -> str:
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return json.dumps(value) if value is None or isinstance(value, bool) else quoted(value)
