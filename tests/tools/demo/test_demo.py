import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import netloop as trt
from netloop import wts
from netloop.tools.cli import main
from netloop.tools.demo import char_rnn

ROOT = Path(__file__).parents[3]
REAL = ROOT.parent / "shared" / "data" / "char-rnn-128.wts"
"""The 2x128 checkpoint of the training code that TensorRT's sample names."""

CONTINUATIONS = {
    "ROMEO": ":\nI will be so done.\n\nBENVOLIO:\nWhat is the world to the sea",
    "The K": "ing of Warwick,\nWhich is the world than the world that would",
}
NETWORKS = {
    "step": char_rnn.step_network,
    "training": lambda model: char_rnn.training_network(model, 3),
    "generating": char_rnn.generating_network,
}


@pytest.fixture(scope="module")
def tiny():
    return char_rnn.untrained(hidden=5, width=3, seed=1)


@pytest.fixture
def sample(monkeypatch, capsys):
    def run(name, *arguments):
        monkeypatch.syspath_prepend(str(ROOT / "samples"))
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        runpy.run_path(str(ROOT / "samples" / name), run_name="__main__")
        return capsys.readouterr().out

    return run


def generated(model, seed, count, run):
    inputs = {"seed": char_rnn.encode(seed), "count": np.array(count, np.int32)}
    return char_rnn.decode(run(char_rnn.generating_network(model), inputs)["generated"])


def compiled(network, inputs):
    return trt.compile(network)(inputs)


# ---------------------------------------------------------------------- characters and weights


def test_ids_are_those_of_the_sample():
    assert len(set(char_rnn.VOCABULARY)) == 65
    assert char_rnn.encode("\n !RZaz").tolist() == [0, 2, 1, 31, 38, 39, 64]


def test_decoding_undoes_encoding():
    assert char_rnn.decode(char_rnn.encode("Is it so?")) == "Is it so?"


@pytest.mark.parametrize("text", ["", "naïve"])
def test_a_text_that_the_model_cannot_read_is_refused(text):
    with pytest.raises(trt.InputError, match="NL703"):
        char_rnn.encode(text)


def test_the_weights_that_come_along_are_small():
    assert char_rnn.WEIGHTS.stat().st_size <= 2_000_000


def test_weights_survive_the_way_through_a_network(tiny):
    back = char_rnn.from_constants(tiny.constants())

    assert set(back.arrays) == set(tiny.arrays)
    assert all(np.array_equal(back.arrays[name], tiny.arrays[name]) for name in tiny.arrays)


@pytest.mark.parametrize("name", char_rnn.untrained(2, 2).arrays)
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda array: None, "is missing"),
        (lambda array: array[:0], "is empty"),
        (lambda array: array[:-1], "is .*, and should be float32"),
        (lambda array: array[..., None], "is .*, and should be float32"),
        (lambda array: array.astype(np.float16), "is .*, and should be float32"),
    ],
    ids=["missing", "empty", "a row less", "an axis more", "float16"],
)
def test_wrong_weights_are_refused_by_name(tmp_path, tiny, name, damage, message):
    arrays = {**tiny.arrays, name: damage(tiny.arrays[name])}
    wts.save(tmp_path / "bad.wts", {name: array for name, array in arrays.items() if array is not None})

    with pytest.raises(trt.FileFormatError, match=f"'{name}' {message}") as caught:
        char_rnn.load(tmp_path / "bad.wts")

    assert caught.value.findings[0].where == str(tmp_path / "bad.wts")


def test_other_buffers_in_the_file_do_no_harm(tmp_path, tiny):
    wts.save(tmp_path / "more.wts", {"step": np.array(7), **tiny.arrays})

    assert char_rnn.load(tmp_path / "more.wts").hidden == 5


# ---------------------------------------------------------------------- networks


@pytest.mark.parametrize("name", NETWORKS)
def test_nothing_is_found_in_the_networks(tiny, name):
    assert trt.check(NETWORKS[name](tiny), target="tensorrt") == []


def test_the_step_network_has_the_sample_s_inputs_and_outputs(tiny):
    network = char_rnn.step_network(tiny)

    assert [(tensor.name, tuple(tensor.shape)) for tensor in network.inputs] == [
        ("data", (1, 3)),
        ("hiddenIn", (2, 5)),
        ("cellIn", (2, 5)),
        ("seqLen", ()),
    ]
    assert [(tensor.name, tuple(tensor.shape)) for tensor in network.outputs] == [
        ("hiddenOut", (2, 5)),
        ("cellOut", (2, 5)),
        ("pred", (1, 1)),
    ]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def worked_out(model, ids, hidden, cell):
    """Logits and states after some characters, from the formulas of an LSTM."""
    arrays, logits = model.arrays, []
    hidden, cell = hidden.copy(), cell.copy()
    for number in ids:
        x = arrays["embedding"][number]
        for layer in range(2):
            prefix = f"rnn_multi_rnn_cell_cell_{layer}_basic_lstm_cell_"
            gates = np.concatenate([x, hidden[layer]]) @ arrays[prefix + "kernel"] + arrays[prefix + "bias"]
            i, c, f, o = np.split(gates, 4)
            cell[layer] = sigmoid(f) * cell[layer] + sigmoid(i) * np.tanh(c)
            x = hidden[layer] = sigmoid(o) * np.tanh(cell[layer])
        logits.append(x @ arrays["softmax_softmax_w"] + arrays["softmax_softmax_b"])
    return np.array(logits), hidden, cell


@pytest.fixture(scope="module")
def states():
    random = np.random.default_rng(0)
    return random.normal(size=(2, 2, 5)).astype(np.float32)


@pytest.mark.parametrize("run", [compiled, trt.evaluate])
def test_a_step_is_that_of_an_lstm(tiny, states, run):
    logits, hidden, cell = worked_out(tiny, [40], *states)
    data = tiny.arrays["embedding"][40:41]
    one = np.array(1, np.int32)

    outputs = run(
        char_rnn.step_network(tiny), {"data": data, "hiddenIn": states[0], "cellIn": states[1], "seqLen": one}
    )

    np.testing.assert_allclose(outputs["hiddenOut"], hidden, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(outputs["cellOut"], cell, rtol=1e-4, atol=1e-6)
    assert np.asarray(outputs["pred"]).tolist() == [[np.argmax(logits)]]


@pytest.mark.parametrize("run", [compiled, trt.evaluate])
def test_the_training_network_gives_the_logits_of_every_step(tiny, states, run):
    ids = np.array([3, 1, 4], np.int32)
    logits, hidden, cell = worked_out(tiny, ids, *states)

    outputs = run(char_rnn.training_network(tiny, 3), {"ids": ids, "hiddenIn": states[0], "cellIn": states[1]})

    np.testing.assert_allclose(outputs["logits"], logits, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(outputs["hiddenOut"], hidden, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(outputs["cellOut"], cell, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("count", [0, 1, 12])
def test_engine_and_reference_generate_the_same(tiny, count):
    seed = "To be"

    assert generated(tiny, seed, count, compiled) == generated(tiny, seed, count, trt.evaluate)


def test_a_longer_text_begins_with_the_shorter(tiny):
    assert generated(tiny, "JUL", 40, compiled).startswith(generated(tiny, "JUL", 10, compiled))


# ---------------------------------------------------------------------- samples


@pytest.mark.parametrize("seed", CONTINUATIONS)
@pytest.mark.parametrize("name", ["char_rnn.py", "char_rnn_whole.py"])
@pytest.mark.skipif(not REAL.exists(), reason="the checkpoint is not here")
def test_samples_continue_as_the_published_model_does(sample, name, seed):
    printed = sample(name, "--weights", str(REAL), "--seed", seed, "--length", "60")

    assert printed.startswith(seed + CONTINUATIONS[seed] + "\n")


def test_both_samples_print_the_same_text(sample):
    by_steps, whole = (sample(name, "--length", "80") for name in ("char_rnn.py", "char_rnn_whole.py"))

    assert by_steps.startswith("ROMEO")
    assert by_steps.rsplit("\n", 2)[0] == whole.rsplit("\n", 3)[0]


def test_the_text_of_the_weights_that_come_along_is_english():
    words = generated(char_rnn.load(), "ROMEO", 200, compiled).split()

    assert len({"the", "I", "to", "and", "of", "my", "you"} & set(words)) >= 3


# ---------------------------------------------------------------------- command


def test_the_demo_says_what_it_found(capsys):
    assert main(["demo", "--length", "30"]) == 0

    printed = capsys.readouterr().out
    layers = char_rnn.generating_network(char_rnn.load()).num_layers
    assert f"check: {layers} layers, 0 findings\n" in printed
    assert "\nROMEO" in printed
    assert "ms a character\n" in printed
    assert "engine and reference agree on the first 16 characters\n" in printed


def test_the_demo_fails_where_engine_and_reference_differ(capsys, monkeypatch, tiny, tmp_path):
    wts.save(tmp_path / "tiny.wts", tiny.arrays)
    monkeypatch.setattr(trt, "evaluate", lambda *_: {"generated": np.full(3, -1, np.int32)})

    assert main(["demo", "--weights", str(tmp_path / "tiny.wts"), "--length", "3"]) == 1
    assert "engine and reference differ" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seed", "naïve"], "NL703: the text has a character that the model does not know: ['ï']"),
        (["--weights", "no such file"], "no such file"),
        (["--weights", __file__], "NL701"),
    ],
)
def test_the_demo_tells_what_it_cannot_use(capsys, arguments, message):
    assert main(["demo", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["demo", "--length", "0"], ["demo", "--length", "1e9"], ["demo", "more"]])
def test_arguments_that_do_not_fit_are_refused(capsys, arguments):
    with pytest.raises(SystemExit) as caught:
        main(arguments)

    assert caught.value.code == 2
    assert "usage: netloop" in capsys.readouterr().err


def test_python_m_netloop_is_the_command():
    done = subprocess.run([sys.executable, "-m", "netloop", "--help"], capture_output=True, text=True, check=True)

    assert "demo" in done.stdout
