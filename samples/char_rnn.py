"""TensorRT's sampleCharRNN: a two-layer LSTM continues a text character by character.

The network computes one step, and Python runs the loop: it copies the embedding of a character into ``data``, runs the
engine, passes the states on to the next call, and takes ``pred`` as the next character.

    python samples/char_rnn.py --seed ROMEO --length 60
    python samples/char_rnn.py --weights char-rnn.wts --seed "The K"

It prints the seed with its continuation, and the time per character:

    ROMEO:
    ...
    0.300 ms per character, one call each
"""

import argparse
import time
from pathlib import Path

import numpy as np

import netloop as trt
from netloop.tools.demo import char_rnn


def options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description="Continue a text with a character-level LSTM.")
    parser.add_argument("--weights", type=Path, default=char_rnn.WEIGHTS, help="a weight file of sampleCharRNN")
    parser.add_argument("--seed", default="ROMEO", help="the text to continue")
    parser.add_argument("--length", type=int, default=200, help="the number of characters to generate")
    return parser.parse_args()


def generate(model: char_rnn.CharRnn, seed: str, length: int) -> tuple[str, float]:
    """Return the continuation of a seed, and the milliseconds per character."""
    engine = trt.compile(char_rnn.step_network(model))
    embedding = model.arrays[char_rnn.EMBEDDING]
    inputs = {
        "data": np.zeros((1, model.width), np.float32),
        "hiddenIn": np.zeros((char_rnn.LAYERS, model.hidden), np.float32),
        "cellIn": np.zeros((char_rnn.LAYERS, model.hidden), np.float32),
        "seqLen": np.array(1, np.int32),
    }

    def step(character: int) -> int:
        inputs["data"][0] = embedding[character]
        outputs = engine(inputs)
        inputs["hiddenIn"] = np.asarray(outputs["hiddenOut"])
        inputs["cellIn"] = np.asarray(outputs["cellOut"])
        return outputs["pred"].item()

    *read, last = char_rnn.encode(seed)
    for character in read:
        step(character)
    begin = time.perf_counter()
    generated = [step(last)]
    while len(generated) < length:
        generated.append(step(generated[-1]))
    return char_rnn.decode(generated), 1e3 * (time.perf_counter() - begin) / length


def main() -> None:
    """Print the continuation of a text."""
    given = options()
    text, milliseconds = generate(char_rnn.load(given.weights), given.seed, given.length)
    print(given.seed + text)
    print(f"{milliseconds:.3f} ms per character, one call each")


if __name__ == "__main__":
    main()
