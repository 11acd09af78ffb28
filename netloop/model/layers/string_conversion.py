"""Helper of ``ICastLayer``: conversion between numbers and strings, by the rules of ONNX's Cast.

Where ONNX leaves the result open, it is that of onnxruntime, or an error.
"""

import re

import jax.numpy as jnp
import numpy as np

from netloop.values.diagnostics import LayerError, quoted
from netloop.values.string_arrays import STRING
from netloop.values.types import Array

FLOAT = re.compile(r"[+-]?(\d+\.?\d*(e[+-]?\d+)?|\.\d+(e[+-]?\d+)?|inf|infinity|nan)", re.ASCII | re.IGNORECASE)
WHOLE = re.compile(r"([+-]?)0*(\d+)(\.\d*)?", re.ASCII)
SPACES = " \t\n\v\f\r"

NON_FINITE = {"nan": "NaN", "inf": "INF", "-inf": "-INF"}


def numbers_of(x: Array, is_float: bool) -> Array:
    """The numbers that strings spell: float64, or int64 without the digits after the point.

    Integers beyond int64 wrap to it, as for a conversion to uint64.

    Raises:
        LayerError: a string is no number, or an integer of more than 64 bits.
    """
    read = _float if is_float else _whole
    numbers = [read(number) for number in x.reshape(-1).tolist()]
    if is_float:
        return np.array(numbers, np.float64).reshape(x.shape)
    wrapped = [(number + 2**63) % 2**64 - 2**63 for number in numbers]
    return np.array(wrapped, np.int64).reshape(x.shape)


def _float(text: str) -> float:
    if FLOAT.fullmatch(text.strip(SPACES)) is None:
        raise LayerError(f"{quoted(text)} is no number", "ONNX converts texts such as 3.14, 1e-5, -INF and NaN")
    return float(text)


def _whole(text: str) -> int:
    match_ = WHOLE.fullmatch(text.strip(SPACES))
    if match_ is None:
        raise LayerError(f"{quoted(text)} is no integer", "ONNX converts texts such as 1000 and 100.5")
    # Python refuses to read thousands of digits, by an error of its own
    number = int(match_[1] + match_[2]) if len(match_[2]) <= len(str(2**64)) else 2**64
    if not -(2**63) <= number < 2**64:
        raise LayerError(f"{quoted(text)} has more than 64 bits", "a number has at most 64")
    return number


def strings_of(x: Array) -> Array:
    """Numbers as strings: floating-point numbers with eight significant digits, bools as 0 and 1."""
    if jnp.issubdtype(x.dtype, jnp.floating):
        texts = [f"{number:.8g}" for number in x.astype(np.float64).reshape(-1).tolist()]
        texts = [NON_FINITE.get(text, text) for text in texts]
    else:
        texts = [str(int(number)) for number in x.reshape(-1).tolist()]
    return np.array(texts, STRING).reshape(x.shape)
