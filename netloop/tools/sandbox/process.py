"""A child process that answers frames, until it ends or a time limit ends it."""

import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Mapping
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any, NamedTuple

from netloop.tools.sandbox.errors import SandboxError
from netloop.tools.sandbox.frames import Header, ProtocolError, Values, read_frame, write_frame
from netloop.values.diagnostics import Finding, reason

COMMAND = [sys.executable, "-P", "-m", "netloop.tools.sandbox"]
"""Starts a child; with -P, no module in the current folder, perhaps that of the file, hides one of Python's."""

MOST_LINES = 20
"""The number of last lines of stderr that an error has."""

LOADER_LACKS_MEMORY = "cannot allocate memory for thread-local data"
"""The message of glibc's loader before it ends a process by code 127: a thread found no memory for its variables."""

LAST_BYTES = 16_000
"""The last bytes of stderr that are kept."""

GRACE = 1.0
"""The seconds for which the end of a process waits for the threads at its pipes.

They end with it, unless it has started a process that is in no group of its own and keeps the pipes open.
"""

LONGEST_END = 5.0
"""The seconds in which a process ends that has closed its pipes, or was killed."""

Reply = tuple[Header, Values]


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
        self._parent = os.getpid()
        self._process = subprocess.Popen(
            COMMAND,
            # a fork of this process must not have bytes in a buffer, which it would write to the pipe too
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(),
            start_new_session=True,
        )
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        assert stdin is not None
        assert stdout is not None
        assert stderr is not None
        self._exchanges, self._stderr = _Exchanges(stdin, stdout), _Tail(stderr)
        self._end = weakref.finalize(self, _end, self._process, self._exchanges, self._stderr, self._parent)

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def close(self) -> None:
        """End the process and release its pipes; a fork of this process only releases its copies of them."""
        self._end()

    def request(self, header: Mapping[str, Any], values: Mapping[str, Any], most: int) -> Reply:
        """The reply to a request, whose arrays have at most ``most`` bytes.

        Raises:
            SandboxError: the time limit is exceeded, the process has ended or is that of another process, or the reply
                is no frame.
        """
        if os.getpid() != self._parent:
            raise self._unusable("belongs to the process from which this one was forked")
        with self._lock:
            if not self._end.alive:
                raise self._unusable("has ended, or the model was closed")
            try:
                return self._exchange({**header, "seconds": self.seconds}, values, most)
            # a process that was interrupted, or that answers late, is of no use: its reply would be that of the next
            except BaseException:
                self.close()
                raise

    def _exchange(self, header: Mapping[str, Any], values: Mapping[str, Any], most: int) -> Reply:
        deadline = time.monotonic() + self.seconds
        try:
            return self._exchanges.begin(header, values, most).result(self.seconds)
        except TimeoutError:
            self._is_late = True
        except (EOFError, OSError, CancelledError):
            self._wait_for_end(deadline)
        except ProtocolError as error:
            raise self.protocol_error(str(error)) from error
        raise self._ended()

    def _wait_for_end(self, deadline: float) -> None:
        """Wait for a process that has closed its pipes, as it does a moment before it ends."""
        try:
            self._process.wait(max(0.0, min(LONGEST_END, deadline - time.monotonic())))
        except subprocess.TimeoutExpired:
            self._is_late = time.monotonic() >= deadline

    def _unusable(self, what: str) -> SandboxError:
        text = f"the process of {self.name!r} {what}"
        return SandboxError(Finding("NL634", text, why=reason("NL634"), fix="load the model again"))

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
        finding = Finding(code, what, why=reason(code) + said, fix=fix)
        return SandboxError(finding, ended_by=ended_by, stderr="\n".join(lines))


class _PendingRequest(NamedTuple):
    """A request on its way to the process, and the future of its reply."""

    header: Mapping[str, Any]
    values: Mapping[str, Any]
    most: int
    reply: Future[Reply]


class _Exchanges:
    """Requests and replies through two pipes, in a thread: what holds up the pipes does not hold up the caller.

    The thread closes the pipes when it ends. It refers to nothing but them, so that the caller's object can be
    forgotten.
    """

    def __init__(self, stdin: IO[bytes], stdout: IO[bytes]) -> None:
        self._is_over = False
        self._requests = SimpleQueue[_PendingRequest | None]()
        self._thread = threading.Thread(target=_exchange_all, args=(self._requests, stdin, stdout), daemon=True)
        self._thread.start()

    def begin(self, header: Mapping[str, Any], values: Mapping[str, Any], most: int) -> Future[Reply]:
        """Send a request; return the future of its reply, which raises what ``exchange`` does."""
        request = _PendingRequest(header, values, most, Future())
        self._requests.put(request)
        if self._is_over:  # another thread has closed the model: the request may never be taken
            request.reply.cancel()
        return request.reply

    def close(self, until: float) -> None:
        """End the thread, after the process."""
        self._is_over = True
        self._requests.put(None)
        _join(self._thread, until)


def _exchange_all(requests: SimpleQueue[_PendingRequest | None], stdin: IO[bytes], stdout: IO[bytes]) -> None:
    with stdin, stdout:
        while _answered(requests.get(), stdin, stdout):
            continue


def _answered(request: _PendingRequest | None, stdin: IO[bytes], stdout: IO[bytes]) -> bool:
    """Answer a request, whose arrays nothing refers to afterwards; whether there was one."""
    if request is None or not request.reply.set_running_or_notify_cancel():
        return False
    try:
        request.reply.set_result(exchange(stdin, stdout, *request[:3]))
    except BaseException as error:  # which the caller gets
        request.reply.set_exception(error)
    return True


def exchange(
    stdin: IO[bytes], stdout: IO[bytes], header: Mapping[str, Any], values: Mapping[str, Any], most: int
) -> Reply:
    """Write a request, and read its reply, whose arrays have at most ``most`` bytes.

    Raises:
        ProtocolError: the reply is no frame, or there is no memory for it.
        EOFError, OSError: the process has closed a pipe.
    """
    write_frame(stdin, header, values)
    try:
        reply = read_frame(stdout, most)
    except MemoryError as error:
        raise ProtocolError("with more than there is memory for") from error
    if reply is None:
        raise EOFError("there is no reply")
    return reply


class _Tail:
    """The end of what a stream says, read by a thread, so that the writer never waits."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._last = b""
        self._is_over = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._stream:
            while not self._is_over and (chunk := self._stream.read(4096)):
                self._last = (self._last + chunk)[-LAST_BYTES:]

    def lines(self) -> list[str]:
        """The last lines, without control characters."""
        text = self._last.decode(errors="replace")
        shown = ("".join(name for name in line if name.isprintable()) for line in text.splitlines())
        return [line for line in shown if line.strip()][-MOST_LINES:]

    def close(self, until: float) -> None:
        """Wait for the end of the stream, which the thread then closes; if it does not come, after the next bytes."""
        _join(self._thread, until)
        self._is_over = True


def _join(thread: threading.Thread, until: float) -> None:
    # a model that is in a cycle may be forgotten in any thread, also in this one
    if thread is not threading.current_thread():
        thread.join(max(0.0, until - time.monotonic()))


def _end(process: subprocess.Popen[bytes], exchanges: _Exchanges, stderr: _Tail, parent: int) -> None:
    """End a process; in a fork of its parent, only close the copies of its pipes, which have no threads there."""
    if os.getpid() != parent:
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None
            stream.close()
        process.returncode = 0  # it is none of this process's children, for which Popen would wait
        return
    _kill(process)
    with suppress(subprocess.TimeoutExpired):  # another process may trace it, and hide its end
        process.wait(LONGEST_END)
    until = time.monotonic() + GRACE
    exchanges.close(until)
    stderr.close(until)


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
    modules = [str(Path(__file__).parents[3]), *filter(None, sys.path)]
    return {"JAX_PLATFORMS": "cpu", **os.environ, "PYTHONPATH": os.pathsep.join(modules)}


def _cause(code: int | None) -> str:
    if code is None:
        return "SIGKILL"
    try:
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"
    except ValueError:
        return f"signal {-code}"
