"""Arrays of strings: numpy's StringDType, whose elements are Unicode texts of any length."""

import math
from collections.abc import Sequence
from functools import cache
from itertools import accumulate, pairwise
from typing import Any, cast

import numpy as np
import numpy.typing as npt

STRING = cast("np.dtype[Any]", np.dtypes.StringDType(coerce=False))
"""The numpy type of strings. An element is always a text that UTF-8 can encode, and zeros are empty strings."""

NAME = "string"
"""The name of the type in messages."""

LENGTH = np.dtype("<i8")
"""The type of the length of an encoded string."""

KINDS_OF_TEXT = "OTU"
"""The kinds of numpy types of arrays that may hold strings: objects, StringDType, and texts of fixed length."""


def string_array(given: Any) -> npt.NDArray[Any]:
    """Return an array of strings.

    Args:
        given: an array of objects that are str, of texts of fixed length or of any StringDType; a str; or nested
            sequences of str.

    Raises:
        ValueError: an element is no str, or has half of a surrogate pair, which UTF-8 does not encode.
    """
    if getattr(given, "dtype", None) == STRING:
        return given
    # by way of objects, because numpy would convert numbers, bytes and missing values to texts
    is_other = isinstance(given, np.ndarray | np.generic) and given.dtype.kind not in "OU"
    array: Any = given.astype(object) if is_other else given
    try:
        return np.asarray(array, STRING)
    except UnicodeEncodeError as error:
        raise ValueError(f"it has a text that is no valid Unicode: {error}") from None
    except (ValueError, TypeError):
        raise ValueError(f"not every element is a str{_first_other(array)}") from None


def _first_other(array: Any) -> str:
    """The type of the first element of an array that is no str, in words."""
    elements = array.flat if isinstance(array, np.ndarray) else ()
    return next((f"; one is a {type(element).__name__}" for element in elements if not isinstance(element, str)), "")


def encoded(array: npt.NDArray[Any]) -> bytes:
    """The strings of an array: the lengths of their texts in bytes, as little-endian int64, then the texts in UTF-8."""
    texts = [number.encode() for number in array.reshape(-1).tolist()]
    return np.array([len(text) for text in texts], LENGTH).tobytes() + b"".join(texts)


def decoded(data: bytes, shape: Sequence[int]) -> npt.NDArray[Any]:
    """Return the array of a shape whose strings are ``encoded``.

    Raises:
        ValueError: the data are not those of such an array.
    """
    count = math.prod(shape)
    if len(data) < count * LENGTH.itemsize:
        raise ValueError(f"it has no room for the lengths of {count} strings")
    lengths: list[int] = np.frombuffer(data, LENGTH, count).tolist()
    text = data[count * LENGTH.itemsize :]
    if min(lengths, default=0) < 0 or sum(lengths) != len(text):
        raise ValueError("the lengths of its strings do not add up to its length")
    texts = [text[start:end].decode() for start, end in pairwise(accumulate(lengths, initial=0))]
    return np.array(texts, STRING).reshape(tuple(shape))


def contents(array: npt.NDArray[Any]) -> Any:
    """The elements of an array as a value that can be compared and hashed: their bytes, or their texts."""
    return tuple(array.reshape(-1).tolist()) if array.dtype == STRING else array.tobytes()


@cache
def type_name(dtype: Any) -> str:
    """The name of an element type in messages."""
    return NAME if dtype == STRING else str(dtype)
