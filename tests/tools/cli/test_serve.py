"""``netloop serve``."""

import json
import subprocess

import numpy as np
import pytest

import netloop as trt
from netloop.tools.cli import main, serve
from tests.tools.serve.test_sequences import mixing
from tests.tools.serve.test_server import affine
from tests.tools.serve.test_streams import doubling


@pytest.fixture
def rows(network, tmp_path):
    """The path of a plan of a network of rows."""
    trt.compile(affine(network)).save(tmp_path / "rows.plan")
    return tmp_path / "rows.plan"


@pytest.fixture
def steps(network, tmp_path):
    """The path of a plan of a network with the state ``s``."""
    trt.compile(mixing(network)).save(tmp_path / "steps.plan")
    return tmp_path / "steps.plan"


def settings(folder, name):
    return json.loads((folder / name).read_text(encoding="utf-8"))


def test_it_writes_what_mlserver_starts_with(rows, tmp_path, capsys):
    folder = tmp_path / "served"

    assert main(["serve", str(rows), "--write", str(folder), "--sizes", "1,8", "--port", "9000"]) == 0

    model = settings(folder, "model-settings.json")
    assert model["name"] == "rows"
    assert model["parameters"] == {"uri": "model.plan", "extra": {"sizes": [1, 8]}}
    assert settings(folder, "settings.json") == {"parallel_workers": 0, "http_port": 9000, "grpc_port": 8081}
    found = trt.load(folder / "model.plan")({"x": np.int32([[1, 2, 3]])})["y"]
    np.testing.assert_array_equal(found, [[2, 4, 6]])
    assert f"mlserver start {folder}" in capsys.readouterr().out


def test_states_are_arguments_of_the_service(steps, tmp_path):
    words = ["--states", "s=sn", "--slots", "5", "--sizes", "4", "--name", "totals"]

    assert main(["serve", str(steps), *words, "--write", str(tmp_path / "a"), "--triton", str(tmp_path / "b")]) == 0

    model = settings(tmp_path / "a", "model-settings.json")
    assert model["parameters"]["extra"] == {"sizes": [4], "states": {"s": "sn"}, "slots": 5}
    assert "max_candidate_sequences: 5 " in (tmp_path / "b" / "totals" / "config.pbtxt").read_text()


def test_a_loop_is_served_by_rows(network, tmp_path):
    trt.compile(doubling(network)).save(tmp_path / "texts.plan")
    folder = tmp_path / "served"

    assert main(["serve", str(tmp_path / "texts.plan"), "--stream", "--slots", "4", "--write", str(folder)]) == 0
    assert settings(folder, "model-settings.json")["parameters"]["extra"] == {"stream": True, "slots": 4}
    server = settings(folder, "settings.json")
    assert (server["gzip_enabled"], server["metrics_endpoint"]) == (False, None)


def test_only_a_loop_is_served_by_rows(rows, tmp_path, capsys):
    assert main(["serve", str(rows), "--stream", "--write", str(tmp_path / "served")]) == 2
    assert "NL623" in capsys.readouterr().err
    assert main(["serve", str(rows), "--stream", "--states", "s=sn"]) == 2
    assert "without --states" in capsys.readouterr().err


def test_it_starts_mlserver(rows, monkeypatch):
    started = []

    def run(command, check):
        started.append((command[2:4], settings(serve.Path(command[4]), "model-settings.json")["name"]))
        return subprocess.CompletedProcess(command, 3)

    monkeypatch.setattr(serve, "find_spec", lambda name: object())
    monkeypatch.setattr(subprocess, "run", run)

    assert main(["serve", str(rows)]) == 3
    assert started == [([serve.START, "start"], "rows")]


def test_a_missing_package_is_named(rows, capsys, monkeypatch):
    monkeypatch.setattr("netloop.tools.cli.serve.find_spec", lambda name: None)

    assert main(["serve", str(rows)]) == 2
    assert "pip install 'netloop[serve]'" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--states", "s"], ["--states", "s="], ["--sizes", "1,0"], ["--sizes", "a"]])
def test_wrong_arguments_are_refused(steps, words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["serve", str(steps), *words])
    assert ended.value.code == 2


def test_a_model_that_cannot_be_served_is_refused(steps, tmp_path, capsys):
    assert main(["serve", str(steps), "--write", str(tmp_path / "served")]) == 2
    assert "NL615" in capsys.readouterr().err
    assert not (tmp_path / "served").exists()


def test_an_unknown_state_is_named(steps, tmp_path, capsys):
    assert main(["serve", str(steps), "--states", "s=snn", "--write", str(tmp_path / "served")]) == 2
    assert "the network has no output 'snn'; did you mean 'sn'" in capsys.readouterr().err
