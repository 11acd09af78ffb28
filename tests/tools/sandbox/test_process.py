"""What a sandboxed model does with a process that misbehaves; other scripts take the place of the process."""

import io
import json
import os
import sys
import time

import numpy as np
import pytest

from netloop.tools.sandbox import SandboxError, load, process
from netloop.tools.sandbox.frames import DTYPES, ProtocolError, read_frame, write_frame

TENSOR = {"name": "y", "kind": "tensor", "dtype": "float32", "shape": [2]}
READY = {"inputs": [], "outputs": [TENSOR], "values": {}}
FLOATS = {"y": {"dtype": "float32", "shape": [2]}}


def frame(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(4, "big") + text + data


@pytest.fixture
def runs(monkeypatch):
    """Lets a script take the place of the process of a model."""
    monkeypatch.delenv("PYTHONFAULTHANDLER", raising=False)  # Python would write lines of its own

    def run(script):
        monkeypatch.setattr(process, "COMMAND", [sys.executable, "-S", "-c", "import os, sys, time, signal\n" + script])

    return run


def answers(*frames, end="sys.stdin.buffer.read()"):
    """A script that writes these bytes at once, and then waits for the end."""
    return f"sys.stdout.buffer.write({b''.join(frames)!r})\nsys.stdout.flush()\n{end}"


def test_answer_in_the_right_form_is_the_outputs(runs):
    runs(answers(frame(READY), frame({"values": FLOATS}, np.float32([1, 2]).tobytes())))
    with load("m.onnx") as model:
        assert model()["y"].tolist() == [1, 2]


@pytest.mark.parametrize(
    "reply",
    [
        b"\xff\xff\xff\xff",
        frame(b"{"),
        frame(b"[" * 100_000),
        frame([1]),
        frame({}),
        frame({"values": {"y": 1}}),
        frame({"values": {"y": {"dtype": "object", "shape": [2]}}}, bytes(16)),
        frame({"values": {"y": {"dtype": "float32", "shape": [-2]}}}),
        frame({"values": {"y": {"dtype": "float32", "shape": [1 << 40]}}}),
        frame({"values": {"y": {"dtype": "float32", "shape": [1 << 61] * 32}}}),
        frame({"values": {"y": {"dtype": "float32", "shape": [True]}}}, bytes(4)),
        frame({"values": {"y": {"dtype": "int32", "shape": [2]}}}, bytes(8)),
        frame({"values": {"y": {"dtype": "float32", "shape": [1]}}}, bytes(4)),
        frame({"values": {"y": None}}),
        frame({"values": {}}),
        frame({"values": {**FLOATS, "z": None}}, bytes(8)),
        frame({"error": 1, "values": {}}),
        frame({"error": {"class": "ModelError", "text": ""}, "values": {}}),
        frame({"error": {"class": "ModelError", "text": "", "findings": [{}]}, "values": {}}),
        frame({"error": {"class": "SystemExit", "text": "0"}, "values": {}}),
    ],
)
def test_answer_in_another_form_ends_the_process(runs, reply):
    runs(answers(frame(READY), reply))
    with load("m.onnx", memory=1 << 30) as model:
        with pytest.raises(SandboxError, match=r"NL633: the process of 'm.onnx' answered with "):
            model()
        with pytest.raises(SandboxError, match="NL634"):
            model()


@pytest.mark.parametrize(
    "described",
    [
        {"inputs": [], "values": {}},
        {**READY, "inputs": {"x": TENSOR}},
        {**READY, "outputs": [1]},
        {**READY, "outputs": [{**TENSOR, "name": 1}]},
        {**READY, "outputs": [{**TENSOR, "kind": "file"}]},
        {**READY, "outputs": [{**TENSOR, "shape": [-7]}]},
    ],
)
def test_description_in_another_form_ends_the_process(runs, described):
    runs(answers(frame(described)))
    with pytest.raises(SandboxError, match="NL633"):
        load("m.onnx")


@pytest.mark.parametrize(
    ("script", "ended_by", "what"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV", "was ended by SIGSEGV"),
        ("os.abort()", "SIGABRT", "was ended by SIGABRT"),
        ("sys.exit(3)", "exit code 3", "was ended by exit code 3"),
        ("sys.stdout.buffer.write(bytes([0, 0, 0, 9]))", "exit code 0", "was ended by exit code 0"),
        ("sys.stdout.close(); os.close(1); time.sleep(60)", "seconds", "took longer than 3 seconds"),
    ],
)
def test_end_of_the_process_is_named(runs, script, ended_by, what):
    runs("sys.stderr.write('one\\n\\x1b[31mtwo\\x00\\n'); sys.stderr.flush()\n" + script)
    with pytest.raises(SandboxError, match=what) as caught:
        load("m.onnx", seconds=3 if ended_by == "seconds" else 60)  # it writes before

    assert caught.value.ended_by == ended_by
    assert caught.value.stderr == "one\n[31mtwo"
    assert "its last line was '[31mtwo'" in caught.value.findings[0].why


def test_process_that_runs_out_of_memory_is_an_error_about_memory(runs):
    runs(answers(frame({"error": {"class": "_ArrayMemoryError", "text": "8 EiB"}, "values": {}})))
    with pytest.raises(SandboxError, match=r"NL632: the process of 'm.onnx' ran out of memory") as caught:
        load("m.onnx")

    assert caught.value.ended_by == "memory"


def test_loader_that_finds_no_memory_for_a_thread_is_an_error_about_memory(runs):
    runs(
        "sys.stderr.write('cannot allocate memory for thread-local data: ABORT\\n'); sys.stderr.flush(); os._exit(127)"
    )
    with pytest.raises(SandboxError, match=r"NL632: the process of 'm.onnx' ran out of memory") as caught:
        load("m.onnx")

    assert caught.value.ended_by == "memory"


def test_process_that_writes_much_to_stderr_is_not_held_up(runs):
    runs(
        "sys.stderr.write('x' * 79 + '\\n' * 1); sys.stderr.write(('y' * 79 + '\\n') * 50_000)\n"
        + answers(frame(READY))
    )
    with load("m.onnx") as model:
        assert list(model.outputs) == ["y"]
        assert len(model._process._stderr._last) <= process.LAST_BYTES


def test_process_that_reads_nothing_is_ended_in_time(runs):
    runs(answers(frame(READY), end="time.sleep(60)"))
    with load("m.onnx") as model:
        model.seconds, begin = 0.5, time.monotonic()
        with pytest.raises(SandboxError, match="NL631"):
            model(x=np.zeros(1 << 22))
        assert time.monotonic() - begin < 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
def test_child_of_the_process_is_ended_too(runs):
    """It would keep the pipes open, and the caller waiting."""
    runs("pid = os.fork()\nif pid: os._exit(0)\ntime.sleep(60)")
    begin = time.monotonic()
    with pytest.raises(SandboxError, match="NL631"):
        load("m.onnx", seconds=0.5)

    assert time.monotonic() - begin < 20


LEAVES_THE_GROUP = """
if not os.fork():
    os.setsid()
    time.sleep(60)
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
@pytest.mark.parametrize("held", ["stdin, stdout and stderr", "stdout", "stderr"])
def test_child_of_the_process_that_left_its_group_does_not_hold_up_the_caller(runs, held):
    closed = [number for number, name in enumerate(("stdin", "stdout", "stderr")) if name not in held]
    closes = "".join(f"os.close({number})\n" for number in closed)
    runs("os.read(0, 1)\n" + answers(frame(READY), end=closes + LEAVES_THE_GROUP))  # the request is written by then
    with load("m.onnx") as model:
        model.seconds, begin = 0.5, time.monotonic()
        with pytest.raises(SandboxError, match=r"NL631|NL632"):
            # more than a pipe holds
            model(x=np.zeros(1 << 18))
        assert time.monotonic() - begin < 30


def test_interrupted_call_ends_the_process(runs, monkeypatch):
    """Its reply would be taken for that of the next call."""

    def interrupt(*given):
        raise KeyboardInterrupt

    runs(answers(frame(READY)))
    with load("m.onnx") as model:
        monkeypatch.setattr(process, "read_frame", interrupt)
        with pytest.raises(KeyboardInterrupt):
            model()
        with pytest.raises(SandboxError, match="NL634"):
            model()


def test_call_of_a_model_that_another_thread_closes_ends_at_once(runs):
    runs(answers(frame(READY)))
    with load("m.onnx") as model:
        request = model._process._exchanges.begin

        def begin(*given):
            model.close()
            return request(*given)

        model._process._exchanges.begin, start = begin, time.monotonic()
        with pytest.raises(SandboxError, match=r"NL632: the process of 'm.onnx' was ended by SIGKILL"):
            model()
        assert time.monotonic() - start < 20


def test_model_that_is_forgotten_ends_its_process(runs):
    runs(answers(frame(READY)))
    model = load("m.onnx")
    pid = model.pid
    del model
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_module_in_the_current_folder_is_not_imported(tmp_path, monkeypatch):
    """It may be the folder of the untrusted file."""
    assert "-P" in process.COMMAND
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    assert "" not in process._environment()["PYTHONPATH"].split(os.pathsep)


# ---------------------------------------------------------------------------- frames


@pytest.mark.parametrize("name", DTYPES)
def test_array_of_every_element_type_comes_back(name):
    stream = io.BytesIO()
    array = np.array([[0, 1, 0], [1, 1, 0]]).astype(np.float32).astype(DTYPES[name])
    write_frame(stream, {"k": 1}, {"a": array, "b": array[0, 0, ...], "c": [array[:0], array.T], "d": None})
    stream.seek(0)
    header, values = read_frame(stream, 200)

    assert header == {"k": 1}
    for found, wanted in zip(
        [values["a"], values["b"], *values["c"]], [array, array[0, 0, ...], array[:0], array.T], strict=True
    ):
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found.astype(np.float32), wanted.astype(np.float32))
    assert values["d"] is None
    assert read_frame(stream, 100) is None


STRINGS = {"dtype": "string", "shape": [2], "bytes": 18}


@pytest.mark.parametrize(
    ("form", "data", "message"),
    [
        (STRINGS, bytes([1, *[0] * 7, 1, *[0] * 7]) + b"a\xff", "strings that cannot be read"),
        (STRINGS, bytes([1, *[0] * 7, 2, *[0] * 7]) + b"ab", "strings that cannot be read"),
        (STRINGS | {"shape": [3]}, bytes(18), "strings that cannot be read"),
        (STRINGS | {"shape": [1 << 61, 1 << 61]}, bytes(18), "strings that cannot be read"),
        (STRINGS | {"shape": [0, 1 << 61, 1 << 61], "bytes": 0}, b"", "strings that cannot be read"),
        (STRINGS | {"bytes": -1}, b"", "without their number of bytes"),
        (STRINGS | {"bytes": "2"}, b"", "without their number of bytes"),
        (STRINGS | {"bytes": 1 << 40}, b"", "arrays that are too large"),
    ],
    ids=repr,
)
def test_strings_that_are_none_are_refused(form, data, message):
    with pytest.raises(ProtocolError, match=message):
        read_frame(io.BytesIO(frame({"values": {"a": form}}, data)), 100)


def test_bool_that_is_neither_0_nor_1_is_true():
    stream = io.BytesIO(frame({"values": {"a": {"dtype": "bool", "shape": [2]}}}, bytes([2, 0])))

    assert read_frame(stream, 100)[1]["a"].view(np.uint8).tolist() == [1, 0]


def test_bits_that_an_element_does_not_have_are_dropped():
    stream = io.BytesIO(frame({"values": {"a": {"dtype": "uint4", "shape": [1]}}}, bytes([0xF3])))

    assert read_frame(stream, 100)[1]["a"].view(np.uint8).tolist() == [3]


def test_arrays_share_the_limit_of_bytes():
    stream = io.BytesIO(frame({"values": {"a": FLOATS["y"], "b": FLOATS["y"]}}, bytes(16)))
    with pytest.raises(ProtocolError, match="arrays that are too large"):
        read_frame(stream, 15)
