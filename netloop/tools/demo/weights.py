"""The characters and the weights of the model."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from netloop.formats import wts
from netloop.values.diagnostics import FileFormatError, Finding, InputError
from netloop.values.types import Array

VOCABULARY = "\n! $'&-,.3;:?ACBEDGFIHKJMLONQPSRUTWVYXZacbedgfihkjmlonqpsrutwvyxz"
"""The characters in the order of their ids, which is that of the training code that the sample names."""

WEIGHTS = Path(__file__).with_name("char_rnn.wts")
"""The weights that come with netloop."""

LAYERS = 2
GATES = 4  # in the order i, c, f, o
KERNEL = "rnn_multi_rnn_cell_cell_{}_basic_lstm_cell_kernel"
BIAS = "rnn_multi_rnn_cell_cell_{}_basic_lstm_cell_bias"
SOFTMAX_W, SOFTMAX_B, EMBEDDING = "softmax_softmax_w", "softmax_softmax_b", "embedding"


# ---------------------------------------------------------------------- characters


def encode(text: str) -> Array:
    """The ids of the characters of a text, int32.

    Raises:
        InputError: a character is not in the vocabulary, or there is none.
    """
    if not text:
        raise InputError(
            Finding("NL703", "the text is empty", why="the model predicts the next character from those before it")
        )
    strange = sorted(set(text) - set(VOCABULARY))
    if strange:
        what = f"the text has {'characters' if strange[1:] else 'a character'} that the model does not know: {strange}"
        why = f"the model knows these {len(VOCABULARY)}: {VOCABULARY!r}"
        raise InputError(Finding("NL703", what, why=why))
    return np.array([VOCABULARY.index(character) for character in text], np.int32)


def decode(ids: Iterable[Any]) -> str:
    """Return the text of ids."""
    return "".join(VOCABULARY[int(value)] for value in ids)


# ---------------------------------------------------------------------- weights


@dataclass(frozen=True)
class CharRnn:
    """The weights of a model.

    A kernel has a row for each element of what the layer reads, then one for each element of its hidden state, and a
    column for each gate of each hidden element, gate by gate: i, c, f, o.

    Attributes:
        arrays: float32, by the names that the sample's weight file has.
        source: the file that they came from, for messages.
    """

    arrays: Mapping[str, Array]
    source: str = ""

    def __post_init__(self) -> None:
        for name, shape in self._shapes().items():
            array = self._array(name)
            if not array.size:
                self._refuse(name, "is empty")
            if array.shape != shape or array.dtype != np.float32:
                self._refuse(name, f"is {array.dtype}{list(array.shape)}, and should be float32{list(shape)}")

    @property
    def hidden(self) -> int:
        """The length of the hidden state of a layer."""
        return self._array(BIAS.format(0)).size // GATES

    @property
    def width(self) -> int:
        """The length of the embedding of a character."""
        return self._array(EMBEDDING).size // len(VOCABULARY)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """The expected shapes, first those that decide the others."""
        hidden, characters = self.hidden, len(VOCABULARY)
        shapes: dict[str, tuple[int, ...]] = {EMBEDDING: (characters, self.width)}
        for layer in range(LAYERS):
            shapes[BIAS.format(layer)] = (GATES * hidden,)
        for layer, width in enumerate((self.width, *[hidden] * (LAYERS - 1))):
            shapes[KERNEL.format(layer)] = (width + hidden, GATES * hidden)
        return {**shapes, SOFTMAX_W: (hidden, characters), SOFTMAX_B: (characters,)}

    def _array(self, name: str) -> Array:
        return self.arrays[name] if name in self.arrays else self._refuse(name, "is missing")

    def _refuse(self, name: str, what: str) -> NoReturn:
        why = f"the sizes of all buffers follow from those of {EMBEDDING!r} and {BIAS.format(0)!r}"
        raise FileFormatError(Finding("NL702", f"buffer {name!r} {what}", self.source, why))

    def constants(self) -> dict[str, Array]:
        """The constants of the networks, by the names of their layers."""
        arrays: dict[str, Array] = {EMBEDDING: self.arrays[EMBEDDING]}
        for layer in range(LAYERS):
            kernel, bias = KERNEL.format(layer), self.arrays[BIAS.format(layer)]
            width = len(self.arrays[kernel]) - self.hidden
            arrays[f"{kernel}_input"] = _transposed(self.arrays[kernel][:width])
            arrays[f"{kernel}_recurrent"] = _transposed(self.arrays[kernel][width:])
            arrays[f"{BIAS.format(layer)}_input"] = bias
            arrays[f"{BIAS.format(layer)}_recurrent"] = np.zeros_like(bias)
        arrays[SOFTMAX_W] = _transposed(self.arrays[SOFTMAX_W])
        arrays[SOFTMAX_B] = self.arrays[SOFTMAX_B].reshape(-1, 1)
        return arrays


def from_constants(constants: Mapping[str, Any]) -> CharRnn:
    """Return the model whose networks have these constants: the inverse of ``CharRnn.constants``."""
    result = {name: np.array(array, np.float32) for name, array in constants.items()}
    arrays: dict[str, Array] = {}
    for layer in range(LAYERS):
        kernel, bias = KERNEL.format(layer), BIAS.format(layer)
        arrays[kernel] = np.vstack([result[f"{kernel}_input"].T, result[f"{kernel}_recurrent"].T])
        arrays[bias] = result[f"{bias}_input"] + result[f"{bias}_recurrent"]
    arrays[SOFTMAX_W], arrays[SOFTMAX_B] = _transposed(result[SOFTMAX_W]), result[SOFTMAX_B].reshape(-1)
    return CharRnn({**arrays, EMBEDDING: result[EMBEDDING]})


def _transposed(array: Array) -> Array:
    return np.ascontiguousarray(array.T)


def load(path: str | os.PathLike[str] = WEIGHTS) -> CharRnn:
    """Return the model of a weight file.

    Raises:
        FileFormatError: the file is damaged, or its buffers are not those of this model.
    """
    return CharRnn(wts.load(path), os.fspath(path))


def untrained(hidden: int, width: int, seed: int = 0) -> CharRnn:
    """Return an untrained model, with small random weights and a forget bias of 1."""
    random = np.random.default_rng(seed)

    def matrix(rows: int, columns: int) -> Array:
        return random.uniform(-1, 1, (rows, columns)).astype(np.float32) / np.float32(np.sqrt(rows))

    bias = np.repeat(np.array([0, 0, 1, 0], np.float32), hidden)
    arrays = {EMBEDDING: random.normal(0, 0.5, (len(VOCABULARY), width)).astype(np.float32)}
    for layer, reads in enumerate((width, *[hidden] * (LAYERS - 1))):
        arrays |= {KERNEL.format(layer): matrix(reads + hidden, GATES * hidden), BIAS.format(layer): bias}
    return CharRnn(
        {**arrays, SOFTMAX_W: matrix(hidden, len(VOCABULARY)), SOFTMAX_B: np.zeros(len(VOCABULARY), np.float32)}
    )
