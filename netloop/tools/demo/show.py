"""The demo of ``netloop demo``: text generated in a loop, checked, compiled and compared."""

import time
from pathlib import Path

import numpy as np

import netloop as trt
from netloop.tools.demo import char_rnn
from netloop.values.types import Array

COMPARED = 16
"""The number of characters that the reference generates too; it is slow."""


def show(text: str, length: int, weights: Path | None = None) -> int:
    """Continue a text by some characters, with other weights than the demo's if they are given.

    Returns:
        0 if engine and reference agree, else 1.
    """
    file = weights or char_rnn.WEIGHTS
    seed, model = char_rnn.encode(text), char_rnn.load(file)
    print(f"model: two LSTM layers of {model.hidden}, from {file.name}")
    begin = time.perf_counter()
    network = char_rnn.generating_network(model)
    built = time.perf_counter() - begin
    findings = trt.check(network)
    print(f"check: {network.num_layers} layers, {len(findings)} findings", *findings, sep="\n")
    generated = _generate(network, {"seed": seed, "count": np.array(length, np.int32)}, built)
    return _compare(network, seed, generated)


def _generate(network: trt.INetworkDefinition, inputs: dict[str, Array], built: float) -> Array:
    """Return the ids that the engine generates. It is called twice, because the first call compiles."""
    begin = time.perf_counter()
    engine = trt.compile(network)
    np.asarray(engine(inputs)["generated"])
    middle = time.perf_counter()
    generated = np.asarray(engine(inputs)["generated"])
    end = time.perf_counter()
    print(f"\n{char_rnn.decode(inputs['seed'])}{char_rnn.decode(generated)}\n")
    seconds = (end - middle) / len(generated)
    print(f"time: {built:.3f} s to build, {middle - begin:.3f} s to compile, {1e3 * seconds:.3f} ms a character")
    return generated


def _compare(network: trt.INetworkDefinition, seed: Array, generated: Array) -> int:
    """Generate the first characters with the reference too; return 0 if they are the same, else 1."""
    first = generated[:COMPARED]
    expected = trt.evaluate(network, {"seed": seed, "count": np.array(len(first), np.int32)})["generated"]
    if np.array_equal(first, expected):
        print(f"engine and reference agree on the first {len(first)} characters")
        return 0
    print(f"engine and reference differ: {char_rnn.decode(first)!r} and {char_rnn.decode(expected)!r}")
    return 1
