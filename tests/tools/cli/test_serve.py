"""``netloop serve``; the server itself is tested in ``tests/tools/serve/test_listening.py``."""

import sys
from types import ModuleType

import numpy as np
import pytest

import netloop as trt
from netloop.serve import Sequences, Server, Streams
from netloop.tools.cli import main, serve
from tests.support.networks import combine, mark
from tests.tools.serve.test_sequences import mixing
from tests.tools.serve.test_server import affine, of_scaled, scaled
from tests.tools.serve.test_streams import doubling


@pytest.fixture
def save(tmp_path):
    """A function that writes the plan of a network; it returns the path as text."""

    def written(make):
        path = tmp_path / f"{make.__name__}.plan"
        trt.compile(make(trt.INetworkDefinition())).save(path)
        return str(path)

    return written


@pytest.fixture
def run(monkeypatch):
    """A function that runs the command with a server which ends at once, after a call of a function with its model."""
    monkeypatch.setattr(serve, "find_spec", lambda name: object())
    listening = ModuleType("listening")
    monkeypatch.setitem(sys.modules, serve.LISTENING, listening)

    def served(words, act):
        def fake(endpoint, host, port, grpc_port, ready):
            ready(f"{host}:{port}", f"{host}:{grpc_port}")
            (model,) = endpoint.models.values()
            act(model, endpoint)

        listening.run = fake
        assert main(["serve", *words]) == 0

    return served


def test_a_model_is_served_by_its_name_at_this_machine(save, run, capsys):
    def act(model, endpoint):
        assert (model.name, type(model.service), model.service.sizes) == ("affine", Server, (1, 4, 16, 64))
        assert endpoint.max_body == 256 << 20
        np.testing.assert_array_equal(model.service(x=np.int32([[1, 2, 3]]))["y"], [[2, 4, 6]])

    run([save(affine)], act)
    says = "http://127.0.0.1:8080/v2/models/affine is ready, and over gRPC at 127.0.0.1:8081, until Ctrl-C\n"
    assert capsys.readouterr().out == says


def test_arguments_reach_the_service(save, run, capsys):
    def steps(model, _):
        assert (model.name, type(model.service), model.service.slots) == ("totals", Sequences, 5)
        assert model.service._idle == 3
        assert (model.service._room, model.service._timeout, model.service._delay) == (7, 2.5, 0.002)

    words = ["--states", "s=sn", "--slots", "5", "--sizes", "4", "--idle", "3", "--queue", "7", "--timeout", "2.5"]
    address = ["--host", "0.0.0.0", "--port", "9000", "--grpc-port", "9001"]
    run([save(mixing), "--name", "totals", "--delay", "2", *words, *address], steps)
    says = "http://0.0.0.0:9000/v2/models/totals is ready, and over gRPC at 0.0.0.0:9001"
    assert capsys.readouterr().out.startswith(says)

    def rows(model, endpoint):
        assert model.service.sizes == (1, 8)
        assert endpoint.max_body == 1 << 20
        assert model.service(of_scaled(3, 4))["y"].tolist() == [[12, 12]]

    run([save(scaled), "--shared", "factor", "--sizes", "1,8", "--max-body", "1"], rows)
    run([save(doubling), "--stream", "--slots", "4", "--queue", "3"], streams)


def streams(model, _):
    assert type(model.service) is Streams
    assert (model.service._engine.slots, model.service._room) == (4, 3)


def test_a_model_without_rows_is_served_one_request_at_a_time(save, run, capsys):
    def act(model, _):
        assert model.service.sizes == ()

    run([save(mixing)], act)
    assert "one request at a time: not all inputs and outputs have rows" in capsys.readouterr().err
    run([save(affine), "--sizes", "0"], act)
    run([save(mixing), "--quiet"], act)
    assert capsys.readouterr().err == ""


def wide(network):
    x = network.add_input("x", trt.float32, (-1, -1))
    return mark(network, y=combine(network, x, x))


def test_shapes_are_compiled_ahead(save, run):
    def act(model, _):
        assert model.service._batches.engine.program_count == 2

    run([save(wide), "--shapes", "x:1x5", "--sizes", "1,2"], act)


def test_a_jax_function_is_served_by_rows(run, tmp_path):
    (tmp_path / "model.py").write_text("def double(x):\n    return 2 * x\n")

    def act(model, _):
        assert (model.name, model.service.sizes) == ("model", (1, 2))
        (y,) = model.service(x=np.float32([[1, 2, 3]])).values()
        np.testing.assert_array_equal(y, [[2, 4, 6]])

    run([f"{tmp_path / 'model.py'}:double", "--shapes", "x:batchx3", "--sizes", "1,2"], act)


@pytest.mark.parametrize("make", [affine, doubling])
def test_a_model_is_loaded_again_from_its_file(save, run, make, tmp_path):
    path = save(make)

    def act(model, _):
        changed = trt.INetworkDefinition()
        trt.compile(make(changed, 3)).save(path)
        model.load()
        service = model.service
        found = service(x=np.array(1)) if make is doubling else service(x=np.int32([[1, 1, 1]]))
        assert {"y": [[3, 3, 3]], "end": 2188}.items() >= {
            name: of.tolist() for name, of in found.items() if name != "all"
        }.items()
        (tmp_path / f"{make.__name__}.plan").unlink()
        with pytest.raises(FileNotFoundError, match="there is no file"):
            model.load()

    run([path, "--device", "cpu", *(["--stream", "--slots", "2"] if make is doubling else [])], act)


def test_a_repository_of_triton_is_written(save, tmp_path, capsys):
    words = ["--states", "s=sn", "--slots", "5", "--sizes", "4", "--name", "totals", "--idle", "2", "--delay", "3"]
    assert main(["serve", save(mixing), *words, "--triton", str(tmp_path / "models")]) == 0

    config = (tmp_path / "models" / "totals" / "config.pbtxt").read_text()
    assert "max_candidate_sequences: 5 max_queue_delay_microseconds: 3000" in config
    assert "max_sequence_idle_microseconds: 2000000" in config
    assert "tritonserver --model-repository" in capsys.readouterr().out


def test_only_a_loop_is_served_by_rows(save, run, capsys):
    path = save(affine)
    assert main(["serve", path, "--triton", "models", "--shared", "x"]) == 2
    assert "--shared is not for Triton" in capsys.readouterr().err
    assert main(["serve", path, "--stream", "--states", "s=sn"]) == 2
    assert "without --states" in capsys.readouterr().err
    run([save(mixing)], lambda *_: None)
    assert main(["serve", path, "--stream"]) == 2
    assert "NL623" in capsys.readouterr().err


@pytest.mark.parametrize("package", ["uvicorn", "grpc"])
def test_a_missing_package_is_named(save, capsys, monkeypatch, package):
    monkeypatch.setattr(serve, "find_spec", lambda name: None if name == package else object())

    assert main(["serve", save(affine)]) == 2
    assert f"{package} is not installed: pip install 'netloop[serve]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["--states", "s"],
        ["--states", "s="],
        ["--sizes", "1,0"],
        ["--sizes", "a"],
        ["--shapes", "x:"],
        ["--port", "70000"],
    ],
)
def test_wrong_arguments_are_refused(words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["serve", "model.plan", *words])
    assert ended.value.code == 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--states", "s=snn"], "the network has no output 'snn'; did you mean 'sn'"),
        (["--shapes", "z:1"], "the network has no input 'z'"),
        (["--shapes", "x:-1"], "--shapes has -1 for input 'x', and a service needs a number for each length"),
        (["--shared", "z"], "the network has no input 'z'"),
    ],
)
def test_an_unknown_name_is_told(save, run, capsys, words, says):
    run([save(mixing)], lambda *_: None)  # the server is one that ends
    assert main(["serve", save(mixing), *words]) == 2
    assert says in capsys.readouterr().err
