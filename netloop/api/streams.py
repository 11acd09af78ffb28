"""Plans from streams and to them."""

from __future__ import annotations

from netloop import plan
from netloop.api.enums import SeekPosition
from netloop.diagnostics import FileFormatError, Finding, NetloopError, reason

MOST_AT_ONCE = 1 << 26
"""How many bytes a reader is asked for at once, at most."""


class IStreamWriter:
    """Takes the bytes of a plan; derive from it and override ``write``."""

    def write(self, data: bytes) -> int:
        """Take some of ``data`` from its beginning, all of it if possible; the number of bytes taken.

        What was left comes again, in another call.
        """
        raise NotImplementedError(f"{type(self).__name__} overrides no write(data)")


class IStreamReaderV2:
    """Gives the bytes of a plan; derive from it and override both methods."""

    def read(self, num_bytes: int, stream: int) -> bytes:
        """The next bytes, ``num_bytes`` of them or fewer, and none where they end; ``stream`` is 0."""
        raise NotImplementedError(f"{type(self).__name__} overrides no read(num_bytes, stream)")

    def seek(self, offset: int, where: SeekPosition) -> bool:
        """Go on from another place; whether that is possible. netloop reads from where the stream is, and in order."""
        return False


def write_to(writer: IStreamWriter, data: bytes) -> None:
    """Give a writer all bytes of a plan.

    Raises:
        NetloopError: the writer raises, or says that it took what it was not given, or nothing.
    """
    given = 0
    while given < len(data):
        rest = data[given:] if given else data
        try:
            taken = writer.write(rest)
        except Exception as error:
            raise NetloopError(_complaint("NL722", writer, f"raised {error!r}", given)) from error
        if not isinstance(taken, int) or not 0 < taken <= len(rest):
            raise NetloopError(_complaint("NL722", writer, f"was given {len(rest)} bytes, and took {taken!r}", given))
        given += taken


def read_from(reader: IStreamReaderV2) -> bytes:
    """The bytes of the plan that a reader gives.

    Raises:
        FileFormatError: the reader raises, ends too early, or gives no bytes; or what it gives is no plan.
    """
    return plan.draw(_Source(reader).take)


class _Source:
    """What a reader gives, in pieces as large as wanted."""

    def __init__(self, reader: IStreamReaderV2) -> None:
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
            given = memoryview(self._reader.read(most, 0)).cast("B")
        except Exception as error:
            raise FileFormatError(_complaint("NL721", self._reader, f"raised {error!r}", self._taken)) from error
        if not 0 < len(given) <= most:
            what = f"was asked for up to {most} bytes, and gave {len(given)}"
            raise FileFormatError(_complaint("NL721", self._reader, what, self._taken))
        self._taken += len(given)
        return given


def _complaint(code: str, stream: object, what: str, after: int) -> Finding:
    return Finding(code, f"the stream {type(stream).__name__} {what}", f"byte {after} of the plan", reason(code))
