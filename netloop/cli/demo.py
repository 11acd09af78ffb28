"""``netloop demo``: a language model that generates text in a loop, checked, compiled and compared."""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

import netloop as trt
from netloop.demo import char_rnn
from netloop.types import Array

SEED = "ROMEO"
LENGTH = 200
LONGEST = 1_000_000
COMPARED = 16
"""The number of characters that the reference generates too; it is slow."""


def add_to(commands: Any) -> None:
    """Add the command to a command line."""
    says = "continue a text with a small LSTM, built through the loop API, and compare with the reference"
    parser = commands.add_parser("demo", help=says, description=says[0].upper() + says[1:] + ".")
    parser.add_argument("--seed", default=SEED, metavar="TEXT", help="the text to continue (%(default)s)")
    parser.add_argument("--length", type=_length, default=LENGTH, metavar="N", help="how many characters (%(default)s)")
    parser.add_argument("--weights", type=Path, default=char_rnn.WEIGHTS, metavar="FILE", help="another weight file")
    parser.set_defaults(run=run)


def _length(text: str) -> int:
    length = int(text)
    if not 1 <= length <= LONGEST:
        raise argparse.ArgumentTypeError(f"{length} is not from 1 to {LONGEST}")
    return length


def run(given: argparse.Namespace) -> int:
    """Run the command; 0 if the network is validated, and engine and reference agree."""
    seed, model = char_rnn.encode(given.seed), char_rnn.load(given.weights)
    print(f"model: two LSTM layers of {model.hidden}, from {given.weights.name}")
    begin = time.perf_counter()
    network = char_rnn.generating_network(model)
    built = time.perf_counter() - begin
    findings = trt.check(network)
    print(f"check: {network.num_layers} layers, {len(findings)} findings", *findings, sep="\n")
    text = _generate(network, {"seed": seed, "count": np.array(given.length, np.int32)}, built)
    return _compare(network, seed, text)


def _generate(network: trt.INetworkDefinition, inputs: dict[str, Array], built: float) -> Array:
    """Return the ids that the engine generates. It is called twice, because the first call compiles."""
    begin = time.perf_counter()
    engine = trt.compile(network)
    np.asarray(engine(inputs)["generated"])
    middle = time.perf_counter()
    generated = np.asarray(engine(inputs)["generated"])
    end = time.perf_counter()
    print(f"\n{char_rnn.decode(inputs['seed'])}{char_rnn.decode(generated)}\n")
    each = (end - middle) / len(generated)
    print(f"time: {built:.3f} s to build, {middle - begin:.3f} s to compile, {1e3 * each:.3f} ms a character")
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
