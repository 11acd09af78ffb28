"""A child process that answers frames, until it ends or a time limit ends it."""

import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from netloop.diagnostics import Finding, reason
from netloop.sandbox.errors import SandboxError
from netloop.sandbox.frames import Header, ProtocolError, Values, read_frame, write_frame

COMMAND = [sys.executable, "-P", "-m", "netloop.sandbox"]
"""Starts a child; with -P, no module in the current folder, perhaps that of the file, hides one of Python's."""

MOST_LINES = 20
"""The number of last lines of stderr that an error has."""

LOADER_LACKS_MEMORY = "cannot allocate memory for thread-local data"
"""What the loader of glibc writes before it ends a process by code 127: a thread found no memory for its variables."""

LAST_BYTES = 16_000
"""The last bytes of stderr that are kept."""


class ChildProcess:
    """A child process. After a SandboxError there is no process any more, and each request raises another one.

    Attributes:
        name: the name of the model, for messages.
        seconds: the time limit of a request.
    """

    def __init__(self, name: str, seconds: float) -> None:
        self.name = name
        self.seconds = seconds
        self._is_late = False
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(),
            start_new_session=True,
        )
        assert self._process.stderr is not None
        self._stderr = _Tail(self._process.stderr)
        self._end = weakref.finalize(self, _end, self._process, self._stderr)

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def close(self) -> None:
        """End the process and release its pipes."""
        self._end()

    def request(self, header: Mapping[str, Any], values: Mapping[str, Any], most: int) -> tuple[Header, Values]:
        """The reply to a request, whose arrays have at most ``most`` bytes.

        Raises:
            SandboxError: the time limit is exceeded, the process has ended, or the reply is no frame.
        """
        with self._lock:
            if not self._end.alive:
                what = f"the process of {self.name!r} has ended, or the model was closed"
                raise SandboxError(Finding("NL634", what, why=reason("NL634"), fix="load the model again"))
            timer = threading.Timer(self.seconds, self._stop_late)
            timer.start()
            try:
                return self._exchange({**header, "seconds": self.seconds}, values, most)
            # a process that was interrupted, or that answers late, is of no use: its reply would be that of the next
            except BaseException:
                self.close()
                raise
            finally:
                timer.cancel()
                timer.join()  # its thread refers to this object, which may be forgotten next

    def _exchange(self, header: Mapping[str, Any], values: Mapping[str, Any], most: int) -> tuple[Header, Values]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            write_frame(self._process.stdin, header, values)
            reply = read_frame(self._process.stdout, most)
        except (EOFError, OSError):
            reply = None
        except ProtocolError as error:
            raise self.protocol_error(str(error)) from error
        if reply is None or self._is_late:
            raise self._ended()
        return reply

    def _stop_late(self) -> None:
        self._is_late = True
        _kill(self._process)

    def protocol_error(self, what: str) -> SandboxError:
        """The error for a reply that the protocol does not allow; it ends the process."""
        self.close()
        return self._error("NL633", f"the process of {self.name!r} answered {what}", "", "do not trust the file")

    def out_of_memory(self) -> SandboxError:
        """The error for a process that ran out of memory; it ends the process."""
        self.close()
        what = f"the process of {self.name!r} ran out of memory"
        return self._error("NL632", what, "memory", "pass a larger memory, if you trust the file")

    def _ended(self) -> SandboxError:
        if not self._is_late:
            # the pipes close a moment before the process has ended
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                _kill(self._process)
        self.close()
        by = _cause(self._process.returncode)
        if self._is_late or by == "SIGXCPU":
            what = f"the process of {self.name!r} took longer than {self.seconds:g} seconds"
            return self._error("NL631", what, "seconds", "pass more seconds, if you trust the file")
        if any(LOADER_LACKS_MEMORY in line for line in self._stderr.lines()):
            return self.out_of_memory()
        what = f"the process of {self.name!r} was ended by {by}"
        return self._error("NL632", what, by, "if it ran out of memory, pass a larger memory")

    def _error(self, code: str, what: str, ended_by: str, fix: str) -> SandboxError:
        lines = self._stderr.lines()
        said = f"; its last line was {lines[-1][:300]!r}" if lines else ""
        found = Finding(code, what, why=reason(code) + said, fix=fix)
        return SandboxError(found, ended_by=ended_by, stderr="\n".join(lines))


class _Tail:
    """The end of what a stream says, read by a thread, so that the writer never waits."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._last = b""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        for chunk in iter(lambda: os.read(self._stream.fileno(), 4096), b""):
            self._last = (self._last + chunk)[-LAST_BYTES:]

    def lines(self) -> list[str]:
        """The last lines, without control characters."""
        text = self._last.decode(errors="replace")
        shown = ("".join(each for each in line if each.isprintable()) for line in text.splitlines())
        return [line for line in shown if line.strip()][-MOST_LINES:]

    def close(self) -> None:
        """Wait for the end of the stream, and close it."""
        self._thread.join()
        self._stream.close()


def _end(process: subprocess.Popen[bytes], stderr: _Tail) -> None:
    _kill(process)
    process.wait()
    for stream in (process.stdin, process.stdout):
        assert stream is not None
        try:
            stream.close()
        except BrokenPipeError:  # what was not written any more
            continue
    stderr.close()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its own children, which would keep its pipes open."""
    if process.returncode is not None:
        return  # its number may be that of another process now
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (AttributeError, OSError):  # Windows has no groups; macOS refuses that of a process that has ended
        process.kill()


def _environment() -> dict[str, str]:
    """The environment, with the modules of this process; computing on the CPU unless JAX_PLATFORMS says otherwise."""
    modules = [str(Path(__file__).parents[2]), *filter(None, sys.path)]
    return {"JAX_PLATFORMS": "cpu", **os.environ, "PYTHONPATH": os.pathsep.join(modules)}


def _cause(code: int) -> str:
    try:
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"
    except ValueError:
        return f"signal {-code}"
