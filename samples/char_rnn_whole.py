"""sampleCharRNN with the loop inside the network: one call generates the whole continuation.

Two loops, one per layer, read the seed. A third loop carries the last character and the states of both layers: each
iteration gathers the embedding of the character, computes one step, and passes the most likely character on to the next
iteration. The input ``count`` is its trip count, and the length of its output.

    python samples/char_rnn_whole.py --seed ROMEO --length 60
    python samples/char_rnn_whole.py --weights char-rnn.wts --seed "The K"

It prints the same text as ``char_rnn.py``, and the time per character of both versions:

    ROMEO:
    ...
    0.100 ms per character, all in one call
    0.300 ms per character, one call each
"""

import time

import char_rnn as by_steps
import numpy as np

import netloop as trt
from netloop.tools.demo import char_rnn


def generate(model: char_rnn.CharRnn, seed: str, length: int) -> tuple[str, float]:
    """Return the continuation of a seed, and the milliseconds per character."""
    engine = trt.compile(char_rnn.generating_network(model))
    inputs = {"seed": char_rnn.encode(seed), "count": np.array(length, np.int32)}
    engine(inputs)  # the first call with a seed length compiles the program
    begin = time.perf_counter()
    generated = np.asarray(engine(inputs)["generated"])
    return char_rnn.decode(generated), 1e3 * (time.perf_counter() - begin) / length


def main() -> None:
    """Continue a text with both versions."""
    given = by_steps.options()
    model = char_rnn.load(given.weights)
    text, milliseconds = generate(model, given.seed, given.length)
    same, longer = by_steps.generate(model, given.seed, given.length)
    print(given.seed + text)
    print(f"{milliseconds:.3f} ms per character, all in one call")
    print(f"{longer:.3f} ms per character, one call each")
    if text != same:
        raise SystemExit(f"one call per character generates another text: {given.seed + same}")


if __name__ == "__main__":
    main()
