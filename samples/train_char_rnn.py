"""Train the character model of sampleCharRNN with ``netloop.to_jax`` and JAX's gradients.

The trained network has the same loops as the generating one. ``jax.value_and_grad`` differentiates it, and ``jax.vmap``
maps it over a batch of sequences.

    python samples/train_char_rnn.py --text shakespeare.txt --output char_rnn.wts --minutes 20

It prints the training loss and, at intervals, the perplexity of the last tenth of the text, which is held out:

    step    500      55.6 s  loss 1.8117
    held-out perplexity 6.875 per character

At the end, it writes the weights with the lowest held-out perplexity. A guess among 5 equally likely characters has a
perplexity of 5.
"""

import argparse
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import netloop as trt
from netloop import wts
from netloop.tools.demo import char_rnn

HELD_OUT = 0.1
REPORT_EVERY = 50


class Trainee(NamedTuple):
    """The state of Adam: the weights, and running means of their gradients and squared gradients."""

    weights: Any
    means: Any
    squares: Any


@dataclass(frozen=True)
class Options:
    """The settings of a training run.

    Attributes:
        sequences: the batch size: the text is cut into this many pieces, which are read in parallel.
        length: the number of characters after which the gradient is truncated.
        rate: the initial learning rate; it decays along a cosine to a hundredth.
        steps: the maximum number of steps.
        minutes: the maximum duration.
        report: the number of steps between evaluations of the held-out perplexity.
        seed: the random seed of the initial weights.
    """

    sequences: int = 32
    length: int = 64
    rate: float = 4e-3
    steps: int = 10**9
    minutes: float = math.inf
    report: int = 500
    seed: int = 0

    def progress(self, step: int, seconds: float) -> float:
        """The completed fraction of the training, from 0 to 1."""
        return min(1.0, max(step / self.steps, seconds / 60 / self.minutes))


class Pieces:
    """A text cut into pieces of equal length, read in parallel, one window at a time."""

    def __init__(self, ids: np.ndarray, sequences: int, length: int) -> None:
        self.windows = (len(ids) - 1) // (sequences * length)
        if not self.windows:
            raise SystemExit(f"the text is too short: it needs at least {sequences * length + 1} characters")
        used = sequences * self.windows * length
        shape = (sequences, self.windows, length)
        self.ids, self.targets = ids[:used].reshape(shape), ids[1 : used + 1].reshape(shape)

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for window in range(self.windows):
            yield self.ids[:, window], self.targets[:, window]


class Trainer:
    """The training of a model: its loss, its gradient and the state of Adam."""

    def __init__(self, model: char_rnn.CharRnn, options: Options) -> None:
        self.options = options
        forward, weights = trt.to_jax(char_rnn.training_network(model, options.length))
        self.forward = jax.vmap(forward, (None, 0))
        self.zero = np.zeros((options.sequences, char_rnn.LAYERS, model.hidden), np.float32)
        zeros = jax.tree.map(jnp.zeros_like, weights)
        self.trainee = Trainee(weights, zeros, jax.tree.map(jnp.copy, zeros))
        self.update = jax.jit(self._update, donate_argnums=(0, 1))
        self.loss = jax.jit(self._loss)

    def _loss(self, weights: Any, state: Any, ids: Any, targets: Any) -> Any:
        """The mean cross-entropy of the next characters, in nats, and the state after the last."""
        made = self.forward(weights, {"ids": ids, "hiddenIn": state[0], "cellIn": state[1]})
        logits = made["logits"]
        right = jnp.take_along_axis(logits, targets[..., None], -1)[..., 0]
        return jnp.mean(jax.nn.logsumexp(logits, -1) - right), (made["hiddenOut"], made["cellOut"])

    def _update(self, trainee: Trainee, state: Any, step: Any, rate: Any, ids: Any, targets: Any) -> Any:
        """One step of Adam, with the gradient clipped to a norm of 1."""
        (loss, state), slopes = jax.value_and_grad(self._loss, has_aux=True)(trainee.weights, state, ids, targets)
        length = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(slopes)))
        slopes = jax.tree.map(lambda slope: slope / jnp.maximum(1, length), slopes)
        means = jax.tree.map(lambda mean, slope: 0.9 * mean + 0.1 * slope, trainee.means, slopes)
        squares = jax.tree.map(lambda mean, slope: 0.99 * mean + 0.01 * slope**2, trainee.squares, slopes)
        unbias = jnp.sqrt(1 - 0.99**step) / (1 - 0.9**step)

        def moved(weight: Any, mean: Any, square: Any) -> Any:
            return weight - rate * unbias * mean / (jnp.sqrt(square) + 1e-8)

        return loss, state, Trainee(jax.tree.map(moved, trainee.weights, means, squares), means, squares)

    def start(self) -> Any:
        """The state before the first character."""
        return jnp.array(self.zero), jnp.array(self.zero)

    def perplexity(self, pieces: Pieces) -> float:
        """The exponential of the mean cross-entropy per character."""
        state, losses = self.start(), []
        for ids, targets in pieces:
            loss, state = self.loss(self.trainee.weights, state, ids, targets)
            losses.append(float(loss))
        return math.exp(sum(losses) / len(losses))


def train(model: char_rnn.CharRnn, text: str, options: Options) -> tuple[char_rnn.CharRnn, float]:
    """Train on a text except its last tenth; return the best model and its perplexity on that tenth."""
    ids = char_rnn.encode(text)
    cut = int(len(ids) * (1 - HELD_OUT))
    trainer = Trainer(model, options)
    held_out = Pieces(ids[cut:], options.sequences, options.length)
    begin, best = time.perf_counter(), (math.inf, model)
    for step in _steps(trainer, Pieces(ids[:cut], options.sequences, options.length), begin):
        if step % options.report == 0:
            best = _judge(trainer, held_out, best)
    perplexity, model = _judge(trainer, held_out, best)
    return model, perplexity


def _steps(trainer: Trainer, pieces: Pieces, begin: float) -> Iterator[int]:
    """Train, and yield the number of each completed step, from 1."""
    options, step, progress = trainer.options, 0, 0.0
    while True:
        state = trainer.start()
        for ids, targets in pieces:
            if progress >= 1:
                return
            rate = options.rate * (0.01 + 0.99 * (1 + math.cos(math.pi * progress)) / 2) * min(1, (step + 1) / 100)
            step += 1
            loss, state, trainer.trainee = trainer.update(trainer.trainee, state, step, rate, ids, targets)
            seconds = time.perf_counter() - begin
            if step % REPORT_EVERY == 0:
                print(f"step {step:6}  {seconds:8.1f} s  loss {float(loss):.4f}", flush=True)
            yield step
            progress = options.progress(step, time.perf_counter() - begin)


def _judge(trainer: Trainer, held_out: Pieces, best: tuple[float, char_rnn.CharRnn]) -> tuple[float, char_rnn.CharRnn]:
    """Return the better of the best model so far and the one in training, with its perplexity."""
    perplexity = trainer.perplexity(held_out)
    print(f"held-out perplexity {perplexity:.3f} per character", flush=True)
    return best if perplexity >= best[0] else (perplexity, char_rnn.from_constants(trainer.trainee.weights))


def main() -> None:
    """Train with the settings of the command line."""
    parser = argparse.ArgumentParser(description="Train the character model of sampleCharRNN on a text.")
    parser.add_argument("--text", type=Path, required=True, help="the text to learn")
    parser.add_argument("--output", type=Path, required=True, help="the weight file to write")
    parser.add_argument("--hidden", type=int, default=160, help="the size of the hidden states")
    parser.add_argument("--embedding", type=int, default=160, help="the size of the embedding of a character")
    parser.add_argument("--steps", type=int, default=Options.steps)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--rate", type=float, default=Options.rate)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    try:
        run(given)
    except trt.NetloopError as error:
        raise SystemExit(str(error)) from None


def run(given: argparse.Namespace) -> None:
    """Train, and write the weights."""
    options = Options(steps=given.steps, minutes=given.minutes, rate=given.rate, seed=given.seed)
    model = char_rnn.untrained(given.hidden, given.embedding, given.seed)
    model, perplexity = train(model, given.text.read_text(encoding="utf-8"), options)
    wts.save(given.output, model.arrays)
    print(f"{given.output}: held-out perplexity {perplexity:.3f} per character")


if __name__ == "__main__":
    main()
