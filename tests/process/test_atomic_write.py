"""Files are replaced whole or not at all, whatever fails, and no temporary file stays."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import netloop as trt
from netloop import plan, wts
from netloop.process.atomic_write import write_together, write_whole

ROOT = Path(__file__).parents[2]
WEIGHTS = np.arange(1 << 16, dtype=np.float32)
on_unix = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has neither fork nor locks of files")


def weighty() -> trt.INetworkDefinition:
    network = trt.INetworkDefinition()
    tensor = network.add_constant(WEIGHTS.shape, WEIGHTS).get_output(0)
    network.mark_output(network.add_unary(tensor, trt.UnaryOperation.NEG).get_output(0))
    return network


SAVES = {
    "some.plan": lambda path: plan.save(weighty(), path),
    "some.wts": lambda path: wts.save(path, {"w": WEIGHTS}),
    "some.onnx": lambda path: trt.onnx.save(weighty(), path),
    "external.onnx": lambda path: trt.onnx.save(weighty(), path, external_above=1000),
    "some.xml": lambda path: trt.openvino.save(weighty(), path),
}
each_format = pytest.mark.parametrize("name", SAVES)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


# ---------------------------------------------------------------------------- a process that is killed

KILLED = """
import runpy, sys
from pathlib import Path

def pieces():
    yield bytes(1000)
    print("writing", flush=True)
    sys.stdin.read()

runpy.run_path("netloop/process/atomic_write.py")["write_whole"](Path(sys.argv[1]), pieces())
"""


@pytest.fixture
def writer(tmp_path):
    """A process that has written a part of ``tmp_path / "file"``."""
    command = [sys.executable, "-c", KILLED, tmp_path / "file"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"writing\n"
        yield process
        process.kill()


@on_unix
def test_next_save_removes_the_file_of_a_killed_process(tmp_path, writer):
    (left,) = os.listdir(tmp_path)
    assert left.startswith("file.")
    assert left.endswith(".netloop.tmp")
    writer.send_signal(signal.SIGKILL)
    writer.wait(100)
    assert os.listdir(tmp_path) == [left]
    write_whole(tmp_path / "other", [b"new"])

    assert os.listdir(tmp_path) == ["other"]


def test_next_save_keeps_the_file_of_a_living_process(tmp_path, writer):
    write_whole(tmp_path / "file", [b"new"])
    assert len(os.listdir(tmp_path)) == 2
    writer.communicate(b"")

    assert contents(tmp_path) == {"file": bytes(1000)}


def test_next_save_keeps_files_of_others(tmp_path):
    names = {"a.tmp", "a.0123456789abcdef.tmp", "a.0123456789ABCDEF.netloop.tmp", "0123456789abcdef.netloop.tmp"}
    for name in names:
        (tmp_path / name).touch()
    (tmp_path / "b.0123456789abcdef.netloop.tmp").mkdir()
    write_whole(tmp_path / "file", [b"new"])

    assert set(os.listdir(tmp_path)) == {*names, "b.0123456789abcdef.netloop.tmp", "file"}


def test_temporary_file_that_another_process_removed_is_made_again(tmp_path, monkeypatch):
    made = []
    real = Path.open

    def removed_at_first(path, *arguments, **named):
        file = real(path, *arguments, **named)
        if path.suffix == ".tmp":
            made.append(path.name)
        if len(made) == 1:
            path.unlink()
        return file

    monkeypatch.setattr(Path, "open", removed_at_first)
    write_whole(tmp_path / "file", [b"new"])

    assert len(set(made)) == 2
    assert contents(tmp_path) == {"file": b"new"}


# ---------------------------------------------------------------------------- failures


@pytest.fixture
def full_disk():
    """A limit of the size of files, which the system reports as it does a full disk."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@on_unix
@each_format
def test_full_disk_leaves_the_old_files(tmp_path, name, full_disk):
    for value in ("some.bin", name):
        (tmp_path / value).write_bytes(b"old")
    before = contents(tmp_path)
    with pytest.raises(OSError, match="File too large") as caught:
        SAVES[name](tmp_path / name)

    assert Path(caught.value.filename).parent == tmp_path
    assert str(caught.value) == f"[Errno {errno.EFBIG}] File too large: {caught.value.filename!r}"
    assert contents(tmp_path) == before


@pytest.fixture
def read_only(tmp_path):
    """A folder in which this process may not write, with a file."""
    (tmp_path / "file").write_bytes(b"old")
    tmp_path.chmod(0o555)
    user = os.geteuid()
    for parent in tmp_path.parents if user == 0 else ():
        parent.chmod(parent.stat().st_mode | 0o055)
    os.seteuid(user or 65534)
    yield tmp_path
    os.seteuid(user)
    tmp_path.chmod(0o755)


@on_unix
def test_read_only_folder_is_named(read_only):
    with pytest.raises(PermissionError) as caught:
        write_whole(read_only / "file", [b"new"])

    assert str(caught.value) == f"[Errno 13] Permission denied: {str(read_only / 'file')!r}"
    assert contents(read_only) == {"file": b"old"}


@each_format
def test_path_that_cannot_be_written_is_named(tmp_path, name):
    (tmp_path / name).mkdir()
    (tmp_path / "file").touch()
    long = "x" * 300 + Path(name).suffix
    for path, kind in [
        (tmp_path / "missing" / name, FileNotFoundError),
        (tmp_path / name, IsADirectoryError),
        (tmp_path / "file" / name, NotADirectoryError),
        (tmp_path / long, OSError),
    ]:
        with pytest.raises(kind) as caught:
            SAVES[name](path)
        assert Path(caught.value.filename).with_suffix("") == path.with_suffix("") or ".data" in caught.value.filename
        assert str(caught.value).count("\n") == 0
    assert sorted(os.listdir(tmp_path)) == sorted([name, "file"])


@on_unix
def test_device_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (Path(os.devnull), tmp_path / "pipe"):
        with pytest.raises(FileExistsError, match="This is not a regular file"):
            write_whole(path, [b"new"])
        assert not path.is_file()


def test_name_may_be_as_long_as_the_system_allows(tmp_path):
    name = "\u00e4" * 127
    write_whole(tmp_path / name, [b"new"])

    assert contents(tmp_path) == {name: b"new"}


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError(), ValueError()])
def test_interrupted_save_leaves_the_old_files(tmp_path, error):
    def interrupted():
        yield b"half"
        raise error

    (tmp_path / "b").write_bytes(b"old")
    with pytest.raises(type(error)):
        write_together({tmp_path / "a": [b"new"], tmp_path / "b": interrupted()})

    assert contents(tmp_path) == {"b": b"old"}


def test_files_are_written_together(tmp_path):
    write_together({tmp_path / "a": [b"1"], tmp_path / "b": [b"2", memoryview(b"3")]})

    assert contents(tmp_path) == {"a": b"1", "b": b"23"}


def test_second_file_that_fails_leaves_the_first_one_old(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "b").mkdir()
    with pytest.raises(IsADirectoryError):
        write_together({tmp_path / "a": [b"new"], tmp_path / "b": [b"new"]})

    assert contents(tmp_path) == {"a": b"old"}
