"""sampleCharRNN with the loop moved into the network: one call continues a whole text.

A first pair of loops reads the seed. A last loop carries the character and the states of both layers from trip to
trip: it gathers the vector of the character, makes a step, and takes the likeliest character for the next trip. Its
number of trips, and the length of its output, is the input ``count``.

    python samples/char_rnn_whole.py --seed ROMEO --length 60
    python samples/char_rnn_whole.py --weights char-rnn.wts --seed "The K"

It prints the same text as ``char_rnn.py`` does, and how long a character took here and there:

    ROMEO:
    ...
    0.100 ms a character, all in one network
    0.300 ms a character, a step of the host each
"""

import time

import char_rnn as by_steps
import numpy as np

import netloop as trt
from netloop.demo import char_rnn


def generate(model: char_rnn.CharRnn, seed: str, length: int) -> tuple[str, float]:
    """The continuation of a seed, and the milliseconds that each of its characters took."""
    engine = trt.compile(char_rnn.generating_network(model))
    inputs = {"seed": char_rnn.encode(seed), "count": np.array(length, np.int32)}
    engine(inputs)  # the first call with a length compiles for it
    begin = time.perf_counter()
    generated = np.asarray(engine(inputs)["generated"])
    return char_rnn.decode(generated), 1e3 * (time.perf_counter() - begin) / length


def main() -> None:
    """Continue a text in both ways."""
    given = by_steps.options()
    model = char_rnn.load(given.weights)
    text, milliseconds = generate(model, given.seed, given.length)
    same, longer = by_steps.generate(model, given.seed, given.length)
    print(given.seed + text)
    print(f"{milliseconds:.3f} ms a character, all in one network")
    print(f"{longer:.3f} ms a character, a step of the host each")
    if text != same:
        raise SystemExit(f"the steps of the host give another text: {given.seed + same}")


if __name__ == "__main__":
    main()
