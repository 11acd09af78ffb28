import importlib
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from netloop.tools.demo import char_rnn

SAMPLES = Path(__file__).parents[2] / "samples"
TEXT = "the cat sat on the mat and that was that. " * 20


@pytest.fixture(scope="module")
def training():
    sys.path.insert(0, str(SAMPLES))
    yield importlib.import_module("train_char_rnn")
    sys.path.remove(str(SAMPLES))


@pytest.fixture(scope="module")
def trainer(training):
    return training.Trainer(char_rnn.untrained(hidden=3, width=2), training.Options(sequences=2, length=4))


WEIGHTS = list(char_rnn.untrained(2, 2).constants())


@pytest.fixture(scope="module")
def losses(trainer):
    """The loss as a function of the weights, and its gradient, both jitted."""
    random = np.random.default_rng(0)
    ids, targets = random.integers(0, 65, (2, 2, 4), np.int32)
    state = 0.5 * random.normal(size=(2, 2, 2, 3)).astype(np.float32)

    def loss(weights):
        return trainer._loss(weights, (state[0], state[1]), ids, targets)[0]

    return jax.jit(loss), jax.jit(jax.grad(loss))


@pytest.mark.parametrize("name", WEIGHTS)
def test_the_gradient_is_the_slope(trainer, losses, name):
    loss, gradient = losses
    weights = {name: np.asarray(array) for name, array in trainer.trainee.weights.items()}
    slope = np.asarray(gradient(weights)[name])
    direction = slope / np.linalg.norm(slope)
    step = 0.02

    def moved(by):
        return float(loss({**weights, name: weights[name] + by * direction}))

    measured = (moved(step) - moved(-step)) / (2 * step)
    assert measured == pytest.approx(np.linalg.norm(slope), rel=5e-3, abs=5e-5)


@pytest.fixture(scope="module")
def trained(training):
    options = training.Options(sequences=2, length=8, rate=0.03, steps=40, report=10)
    return options, *training.train(char_rnn.untrained(hidden=16, width=8), TEXT, options)


def test_40_steps_lower_the_loss(trained):
    _, _, perplexity = trained

    assert perplexity < 20  # 65 to begin with


def test_the_model_that_is_given_back_has_the_perplexity_that_is_told(training, trained):
    options, model, perplexity = trained

    held_out = training.Pieces(char_rnn.encode(TEXT)[int(len(TEXT) * 0.9) :], options.sequences, options.length)
    assert training.Trainer(model, options).perplexity(held_out) == pytest.approx(perplexity, rel=1e-4)


def test_pieces_are_read_on_from_window_to_window(training):
    pieces = training.Pieces(np.arange(14), sequences=2, length=3)

    windows = [(ids.tolist(), targets.tolist()) for ids, targets in pieces]

    assert windows == [
        ([[0, 1, 2], [6, 7, 8]], [[1, 2, 3], [7, 8, 9]]),
        ([[3, 4, 5], [9, 10, 11]], [[4, 5, 6], [10, 11, 12]]),
    ]


def test_the_command_line_says_what_to_train(training, monkeypatch, tmp_path):
    (tmp_path / "text").write_text(TEXT)
    files = ["--text", str(tmp_path / "text"), "--output", str(tmp_path / "made.wts")]
    monkeypatch.setattr(sys, "argv", ["train_char_rnn.py", *files, "--hidden", "4", "--embedding", "3", "--steps", "7"])
    asked = []
    monkeypatch.setattr(training, "train", lambda *arguments: asked.extend(arguments) or (arguments[0], 5.0))

    training.main()

    model, text, options = asked
    assert (text, options.steps) == (TEXT, 7)
    assert (model.hidden, model.width) == (4, 3)
    assert char_rnn.load(tmp_path / "made.wts").hidden == 4


@pytest.mark.parametrize(("text", "message"), [("naïve", "does not know: \\['ï'\\]"), ("to be", "too short")])
def test_a_text_that_cannot_be_learned_is_refused(training, monkeypatch, tmp_path, text, message):
    (tmp_path / "text").write_text(text, encoding="utf-8")
    files = ["--text", str(tmp_path / "text"), "--output", str(tmp_path / "made.wts")]
    monkeypatch.setattr(sys, "argv", ["train_char_rnn.py", *files, "--hidden", "2", "--embedding", "2"])

    with pytest.raises(SystemExit, match=message):
        training.main()
