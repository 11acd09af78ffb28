"""The output of scripts, compared with the logs of their authors' runs on TensorRT and a GPU.

The scripts of NVIDIA's cookbook print each case between two marks, and keep what they printed next to them.
"""

import re
from itertools import zip_longest

import numpy as np

CASE = re.compile(
    r"^=+ Start \[(?P<name>\w+),(?P<arguments>[^\n]*)\]$(?P<text>.*?)^=+ End   \[(?P=name)\]$", re.M | re.S
)
LEFT_OUT = re.compile(
    r"^\[(\d+/\d+/|My Logger).*$"
    r"|^=+ (Public members|Class/Object difference|Usage coverage).*\n( *\d+(/ *\d+)? [a-zA-Z].*\n)*",
    re.M,
)
"""Messages of TensorRT and of the script's logger, and what the script says of the names that classes have."""

TOKEN = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\binf\b|\bnan\b)|\w+")
RELATIVE, ABSOLUTE = 2e-3, 1e-3
"""How far numbers may be apart: the GPU multiplies float32 in TensorFloat-32, which has three digits."""


def cases(text: str) -> dict[str, str]:
    """The output of each case, by its name and arguments, if it has some."""
    return {
        match["name"] + ("" if match["arguments"] == "(),{}" else match["arguments"]): match["text"]
        for match in CASE.finditer(text)
    }


def agree(text: str, log: str) -> bool:
    """Whether two texts have the same words, and numbers that are close."""
    pairs = zip_longest(*(TOKEN.findall(LEFT_OUT.sub("", part)) for part in (text, log)), fillvalue="")
    return all(_are_close(*pair) for pair in pairs)


def _are_close(one: str, other: str) -> bool:
    if one == other:
        return True
    try:
        return bool(np.isclose(float(one), float(other), RELATIVE, ABSOLUTE, equal_nan=True))
    except ValueError:
        return False
