"""Streams to which plans are written and from which they are read."""

from netloop.api.enums import SeekPosition
from netloop.model import plan
from netloop.values.diagnostics import FileFormatError, Finding, NetloopError, reason

MOST_AT_ONCE = 1 << 26
"""The largest number of bytes that a reader is asked for at once."""


class IStreamWriter:
    """A receiver of the bytes of a plan; derive from it and override ``write``."""

    def write(self, data: bytes) -> int:
        """Write ``data``, or as much of its beginning as possible, and return the number of bytes written.

        The rest is passed to another call.
        """
        raise NotImplementedError(f"{type(self).__name__} overrides no write(data)")


class IStreamReader:
    """A source of the bytes of a plan, from TensorRT 10; derive from it and override ``read``."""

    def read(self, size: int) -> bytes:
        """Return the next 1 to ``size`` bytes, or none at the end."""
        raise NotImplementedError(f"{type(self).__name__} overrides no read(size)")


class IStreamReaderV2:
    """A source of the bytes of a plan; derive from it and override both methods."""

    def read(self, num_bytes: int, stream: int) -> bytes:
        """Return the next 1 to ``num_bytes`` bytes, or none at the end; ``stream`` is 0."""
        raise NotImplementedError(f"{type(self).__name__} overrides no read(num_bytes, stream)")

    def seek(self, offset: int, where: SeekPosition) -> bool:
        """Move to another position; whether that is possible. netloop never calls it: it reads in order."""
        return False


def write_to(writer: IStreamWriter, data: bytes) -> None:
    """Write all bytes of a plan.

    Raises:
        NetloopError: the writer raises, or returns a number that is not between 1 and the number of bytes passed.
    """
    literal = 0
    while literal < len(data):
        rest = data[literal:] if literal else data
        try:
            taken = writer.write(rest)
        except Exception as error:
            raise NetloopError(_finding("NL722", writer, f"raised {error!r}", literal)) from error
        if not isinstance(taken, int) or not 0 < taken <= len(rest):
            raise NetloopError(_finding("NL722", writer, f"was given {len(rest)} bytes, and took {taken!r}", literal))
        literal += taken


def read_from(reader: IStreamReader | IStreamReaderV2) -> bytes:
    """Read the bytes of a plan.

    Raises:
        FileFormatError: the reader raises, ends too early or returns something other than bytes; or it is not a plan.
    """
    return plan.draw(_Source(reader).take)


class _Source:
    """A reader wrapped to return exactly the number of bytes asked for."""

    def __init__(self, reader: IStreamReader | IStreamReaderV2) -> None:
        self._reader = reader
        self._taken = 0

    def take(self, size: int) -> bytes:
        """The next ``size`` bytes."""
        taken = bytearray()
        while len(taken) < size:
            taken += self._some(min(size - len(taken), MOST_AT_ONCE))
        return bytes(taken)

    def _some(self, most: int) -> memoryview:
        try:
            result = memoryview(self._read(most)).cast("B")
        except Exception as error:
            raise FileFormatError(_finding("NL721", self._reader, f"raised {error!r}", self._taken)) from error
        if not 0 < len(result) <= most:
            what = f"was asked for up to {most} bytes, and gave {len(result)}"
            raise FileFormatError(_finding("NL721", self._reader, what, self._taken))
        self._taken += len(result)
        return result

    def _read(self, most: int) -> bytes:
        return self._reader.read(most) if isinstance(self._reader, IStreamReader) else self._reader.read(most, 0)


def _finding(code: str, stream: object, what: str, after: int) -> Finding:
    return Finding(code, f"the stream {type(stream).__name__} {what}", f"byte {after} of the plan", reason(code))
