"""Paths that are no files: what reads or writes a file refuses them at once, with an error that names them."""

import os
import threading

import numpy as np
import pytest

import netloop as trt
from netloop import script, wts
from netloop.api.timing_cache import save_timing_cache
from netloop.tools.cli import main
from tests.support.networks import mark

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")


@pytest.fixture
def engine(network):
    x = network.add_input("x", trt.float32, (1,))
    return trt.compile(mark(network, y=network.add_identity(x).get_output(0)))


READERS = {
    "timing cache": (".json", lambda path, engine: trt.compile(engine.network, timing_cache=path)),
    "plan": (".plan", lambda path, engine: trt.load(path)),
    "weights": (".wts", lambda path, engine: wts.load(path)),
    "ONNX": (".onnx", lambda path, engine: trt.onnx.load(path)),
    "OpenVINO": (".xml", lambda path, engine: trt.openvino.load(path)),
}
WRITERS = {
    "plan": (".plan", lambda path, engine: engine.save(path)),
    "ONNX": (".onnx", lambda path, engine: trt.onnx.save(engine.network, path)),
    "OpenVINO": (".xml", lambda path, engine: trt.openvino.save(engine.network, path)),
    "weights": (".wts", lambda path, engine: wts.save(path, {"w": np.ones(1, np.float32)})),
    "script": (".py", lambda path, engine: script.save(engine.network, path)),
    "timing cache": (".json", lambda path, engine: save_timing_cache(trt.ITimingCache(), path)),
}


def no_files(folder, suffix):
    """A pipe, a folder and a device."""
    pipe, within = folder / f"pipe{suffix}", folder / f"folder{suffix}"
    os.mkfifo(pipe)
    within.mkdir()
    return [pipe, within, "/dev/zero"]


def error_of(act, path, engine):
    """The error of an action, which must not wait for ever."""
    errors = []

    def run():
        try:
            act(path, engine)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
    (error,) = errors
    return error


@pytest.mark.parametrize("name", READERS)
def test_what_is_no_file_is_not_read(name, tmp_path, engine):
    suffix, act = READERS[name]
    for path in no_files(tmp_path, suffix):
        error = error_of(act, path, engine)

        assert isinstance(error, OSError | trt.ModelError)
        assert str(path) in str(error)
    assert isinstance(error_of(act, "", engine), FileNotFoundError | trt.ModelError)


@pytest.mark.parametrize("name", WRITERS)
def test_what_is_no_file_is_not_written(name, tmp_path, engine):
    suffix, act = WRITERS[name]
    for path in no_files(tmp_path, suffix)[:2]:
        error = error_of(act, path, engine)

        assert isinstance(error, OSError)
        # a model that is two files may name the second one
        assert str(path).rpartition(".")[0] in str(error)
    assert isinstance(error_of(act, "", engine), OSError | ValueError)


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_command_line_does_not_wait_for_inputs_of_a_pipe(suffix, tmp_path, engine, capsys):
    engine.save(tmp_path / "model.plan")
    for path in no_files(tmp_path, suffix)[:2]:
        assert main(["run", str(tmp_path / "model.plan"), "--inputs", str(path)]) == 2
        assert str(path) in capsys.readouterr().err
